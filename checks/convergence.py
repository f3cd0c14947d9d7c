"""Does ``stele gate`` refuse a release with faster steps and worse convergence? Writes a part of a page of docs.

    python -m checks convergence [--budget 30m] [--write]

An optimizer is planted into PyTorch: it moves the weights after every second step only, and those of the first layer
never, so their gradients are not computed. Its steps are faster, and its trainings miss the target more often. Exit: 0
the gate refuses it for the time to the target; 1 it does not.
"""

import argparse
import sys
from pathlib import Path

from planting import planted, provenance, quoted, run_stele

from stele.report import page

PAGE = Path(__file__).parents[1] / "docs/results/time-to-accuracy.md"
PART = "checks, convergence"  # of the page
# a small scale: five of six trainings of the CNN reach this target
METRICS = "step,time-to-target --accuracy-scale gate --target 14%"
GATE = f"gate torch torch-optimizer --task cnn --phase train --metric {METRICS}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", default="30m", help="default: %(default)s")
    parser.add_argument("--write", action="store_true", help="write docs/results/time-to-accuracy.md")
    arguments = parser.parse_args()
    output, refused = judge(arguments.budget)
    if arguments.write:
        page.fill(PAGE, f"{quoted(GATE, output)}\n\n{provenance()}", by=PART)
    print("The planted optimizer is", "refused" if refused else "NOT refused")
    return 0 if refused else 1


def judge(budget: str) -> tuple[str, bool]:
    """Return what the gate prints, and whether it refuses the planted optimizer for the time to the target."""
    with planted("optimizer") as variables:
        output, report = run_stele(f"{GATE} --budget {budget}", variables)
    statuses = {verdict["metric"]: verdict["status"] for verdict in report["verdicts"]}
    return output, statuses.get("time-to-target") == "REGRESSED"


if __name__ == "__main__":
    sys.exit(main())
