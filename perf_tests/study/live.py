"""The gate itself, on a release with a planted fault: five faults, five words."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(".stele/study")
FAULTY = Path(__file__).with_name("faulty.py")
COMMON = ["--task=gru", "--seed=1", "--scale=study", "--accuracy-scale=smoke"]
# what is planted, the options, and the status that has to come out
FAULTS = {
    "burn": ("5 % of extra work inside each step", ["--phase=infer", "--metric=step"], "REGRESSED"),
    "hoard": ("twice the memory", ["--phase=infer", "--metric=host-memory"], "REGRESSED"),
    "forget": ("three points of accuracy less", ["--phase=train", "--metric=accuracy"], "REGRESSED"),
    "import": ("a framework that does not import", ["--phase=infer", "--metric=step"], "BROKEN"),
    "hang": ("a step that never ends", ["--phase=infer", "--metric=step", "--worker-timeout=10"], "BROKEN"),
    "none": ("nothing", ["--phase=infer", "--metric=step,host-memory"], "PASS"),
}
TOML = """
label = "PyTorch with a fault"
framework = "torch"
imports = ["torch"]
command = {command}
"""


def found(*, only_read: bool) -> dict[str, dict]:
    """Of each fault the status, a message and how long it took; kept beside the pools."""
    path = FOLDER / "live.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    for fault in FAULTS:
        if fault not in known and not only_read:
            known[fault] = gated(fault)
            path.write_text(json.dumps(known, indent=1))
            print(f"live {fault}: {known[fault]}", flush=True)
    return known


def gated(fault: str) -> dict:
    rows = FOLDER / "rows"
    rows.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(FAULTY), fault]
    (rows / "faulty.toml").write_text(TOML.format(command=json.dumps(command)))
    report = FOLDER / f"{fault}.json"
    report.unlink(missing_ok=True)
    asked = [
        sys.executable,
        "-m",
        "stele",
        "gate",
        "torch",
        "faulty",
        *COMMON,
        *FAULTS[fault][1],
        f"--json={report}",
    ]
    start = time.monotonic()
    subprocess.run(asked, env={**os.environ, "STELE_ENVIRONMENTS": str(rows)}, check=False)
    facts = json.loads(report.read_text())
    worst = min(facts["verdicts"], key=lambda one: one["status"] != facts["status"])
    return {
        "status": facts["status"],
        "message": worst["message"].splitlines()[0],
        "seconds": round(time.monotonic() - start),
    }
