"""Run the gates of targets.py. The results stay in live.json, beside this file; an interrupted study continues.

Delete the file after a change of the gate, so that all results are of the same code.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import foreign
import jumping
from pool import FOLDER
from targets import TARGETS, Target

from stele import files

FAULTY = Path(__file__).with_name("faulty.py")
PATH = Path(__file__).with_name("live.json")
TAKEN_AFTER = 20.0  # seconds until a processor is taken away
TOML = """label = "PyTorch with the fault {fault}"
framework = "torch"
imports = ["torch"]
command = {command}

[variables]
"""

Results = dict[str, list[dict[str, Any]]]  # by target, of each run


def load() -> Results:
    return json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}


def run(names: Sequence[str], times: int) -> None:
    """Run each target until it has so many results. Each result is stored before the next run."""
    results = load()
    for number in range(times):
        for name in names:
            of_target = results.setdefault(name, [])
            if len(of_target) > number:
                continue
            of_target.append(gate(name, seed=number))
            files.write_text(PATH, json.dumps(results, indent=1))
            print(f"live {name}, run {number + 1} of {times}: {of_target[-1]}", flush=True)


def gate(name: str, seed: int) -> dict[str, Any]:
    """Run the gate of a target. Return the status, the minutes, the passes and the first message."""
    target, report = TARGETS[name], (FOLDER / f"{name}.json").resolve()
    report.unlink(missing_ok=True)
    command = [*stele(target), "gate", target.old, target.new, *target.options, f"--seed={seed}", "--no-wait",
               f"--json={report}"]  # fmt: skip
    build(target)
    start = time.monotonic()
    with foreign.running(target.disturbance or ""):
        code = run_disturbed(command, target, {**os.environ, "STELE_ENVIRONMENTS": write_environments(target)})
    minutes = (time.monotonic() - start) / 60
    if not report.exists():
        raise SystemExit(f"The gate of {name!r} wrote no report and exited with {code}. See what it printed above.")
    facts = json.loads(report.read_text(encoding="utf-8"))
    worst = min(facts["verdicts"], key=lambda verdict: verdict["status"] != facts["status"])
    machine = facts["machine"]
    return {
        "status": facts["status"],
        "minutes": round(minutes, 2),
        "passes": passes(facts),
        "message": worst["message"].splitlines()[0],
        "date": f"{datetime.now(timezone.utc):%Y-%m-%d}",
        "machine": f"{machine['processor']}, {machine['processors']} processors, {machine['system']}",
    }


def passes(facts: dict[str, Any]) -> int:
    """Return the most passes of a metric. The accuracy counts seeds instead."""
    timed = [verdict["passes"] for verdict in facts["verdicts"] if verdict["metric"] != "accuracy"]
    return max(timed, default=0)


def stele(target: Target) -> list[str]:
    """Return the command that starts Stele, with a wall clock that jumps if the target says so."""
    return [sys.executable, jumping.__file__] if target.disturbance == "clock" else [sys.executable, "-m", "stele"]


def build(target: Target) -> None:
    """Build the environment of a release, which is not part of the time of a gate."""
    if target.old not in ("healthy", "faulty"):
        subprocess.run([sys.executable, "-m", "stele", "env", "make", target.old], check=True)


def write_environments(target: Target) -> str:
    """Describe OLD, a worker without a fault, and NEW, one with the fault, in a folder. Return the folder."""
    folder = (FOLDER / "environments").resolve()
    variables = {"STELE_STUDY_BURN": str(target.burn)}
    if target.disturbance == "clock":
        variables["STELE_STUDY_JUMPS"] = "1"
    for name, fault in (("healthy", "none"), ("faulty", target.fault)):
        text = TOML.format(fault=fault, command=json.dumps([sys.executable, str(FAULTY), fault]))
        lines = [f"{variable} = {json.dumps(value)}\n" for variable, value in variables.items()]
        files.write_text(folder / f"{name}.toml", text + "".join(lines))
    return str(folder)


def run_disturbed(command: Sequence[str], target: Target, variables: dict[str, str]) -> int:
    """Run the command, and take the first of its processors away in between if the target says so."""
    process = subprocess.Popen(command, env=variables)
    timer = threading.Timer(TAKEN_AFTER, take_processor, [process.pid])
    if target.disturbance == "processor":
        timer.start()
    try:
        return process.wait()
    finally:
        timer.cancel()


def take_processor(pid: int) -> None:
    """Limit a process, and what it starts from now on, to all processors but the first that it uses."""
    with contextlib.suppress(ProcessLookupError):
        allowed = sorted(os.sched_getaffinity(pid))
        os.sched_setaffinity(pid, allowed[1:] or allowed)
