"""The gate itself, on releases with a planted fault: does each fault get the expected status?"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(".stele/study")
FAULTY = Path(__file__).with_name("faulty.py")
COMMON = ["--task=gru", "--seed=1", "--scale=study", "--accuracy-scale=smoke"]
# the fault, the options, and the expected status
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


def load_or_gate(*, only_read: bool) -> dict[str, dict]:
    """Return the status, a message and the duration of each fault's gate. Results are stored beside the pools."""
    path = FOLDER / "live.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    for fault in FAULTS:
        if fault not in results and not only_read:
            results[fault] = gate(fault)
            path.write_text(json.dumps(results, indent=1))
            print(f"live {fault}: {results[fault]}", flush=True)
    return results


def gate(fault: str) -> dict:
    environments = FOLDER / "environments"
    environments.mkdir(parents=True, exist_ok=True)
    worker = [sys.executable, str(FAULTY), fault]
    (environments / "faulty.toml").write_text(TOML.format(command=json.dumps(worker)))
    report = FOLDER / f"{fault}.json"
    report.unlink(missing_ok=True)
    command = [
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
    subprocess.run(command, env={**os.environ, "STELE_ENVIRONMENTS": str(environments)}, check=False)
    facts = json.loads(report.read_text())
    worst = min(facts["verdicts"], key=lambda verdict: verdict["status"] != facts["status"])
    return {
        "status": facts["status"],
        "message": worst["message"].splitlines()[0],
        "seconds": round(time.monotonic() - start),
    }
