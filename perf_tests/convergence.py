"""Does ``stele gate`` refuse a release with faster steps and worse convergence? Writes docs/time-to-accuracy.md.

    python perf_tests/convergence.py [--budget 30m] [--write]      or: tox -e convergence

An optimizer is planted into PyTorch: it moves the weights after every second step only. So its steps are faster, and
its trainings miss the target more often. Exit: 0 the gate refuses it for the time to the target; 1 it does not.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

from planting import planted

from stele.measuring import machine
from stele.report import page

PAGE = Path(__file__).parents[1] / "docs/time-to-accuracy.md"
PART = "perf_tests, convergence.py"  # of the page
# a small scale: five of six trainings of the CNN reach this target
GATE = "torch torch-optimizer --task cnn --phase train --metric step,time-to-target --accuracy-scale gate --target 14%"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", default="30m", help="default: %(default)s")
    parser.add_argument("--write", action="store_true", help="write docs/time-to-accuracy.md")
    arguments = parser.parse_args()
    output, refused = judge(arguments.budget)
    if arguments.write:
        page.fill(PAGE, section(output), by=PART)
    print("The planted optimizer is", "refused" if refused else "NOT refused")
    return 0 if refused else 1


def judge(budget: str) -> tuple[str, bool]:
    """Return what the gate prints, and whether it refuses the planted optimizer for the time to the target."""
    with planted("optimizer") as variables, tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [
            sys.executable,
            "-m",
            "stele",
            "gate",
            *GATE.split(),
            "--budget",
            budget,
            "--json",
            str(report),
        ]
        done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, encoding="utf-8", check=False)
        print(done.stdout, flush=True)
        if not report.exists():
            sys.exit(done.returncode)
        verdicts = json.loads(report.read_text(encoding="utf-8"))["verdicts"]
    statuses = {verdict["metric"]: verdict["status"] for verdict in verdicts}
    return done.stdout.strip(), statuses.get("time-to-target") == "REGRESSED"


def section(output: str) -> str:
    facts = machine.facts()
    measured = (
        f"Measured {date.today()} on {facts['processor']}, {facts['processors']} processors, one thread."
    )
    return f"```\n$ stele gate {GATE}\n{output}\n```\n\n{measured}"


if __name__ == "__main__":
    sys.exit(main())
