"""Step times through ``--model`` over those of a hand-written loop of the same model, in processes that take turns.

    python -m checks model_steps [--launches N] [--model NAME ...]

``hand_written.py`` holds the three models and their loops. Prints for each the median ratio of the launches and its
95 % interval. Ends with 1 if an interval is entirely above 1.01. Run nothing else on the machine at the same time.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from harness import LAUNCHES, LIMIT, SETTINGS, measure_ratio

from stele import environments, statistics
from stele.measuring import measure
from stele.subjects.model import inputs, inspection, spec

ENVIRONMENTS = {"torch": "torch", "jax": "jax", "keras": "keras-jax"}
INPUTS = {"torch": "32x3x32x32", "jax": "256x512", "keras": "256x512"}
FILE = Path(__file__).with_name("hand_written.py")


def start_loop(name: str) -> subprocess.Popen[str]:
    environment = environments.load(ENVIRONMENTS[name])
    return subprocess.Popen(
        [sys.executable, FILE, name, str(SETTINGS.threads)],
        env={**os.environ, **environment.variables, **SETTINGS.variables()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def plan_of(name: str) -> measure.Plan:
    """Return the plan of ``--model hand_written.py:build_NAME``, with what its inspection found."""
    environment = environments.load(ENVIRONMENTS[name])
    model = spec.parse(f"{FILE.name}:build_{name}", FILE.parent, inputs=inputs.parse(INPUTS[name]))
    found = inspection.inspect(environment, model, timeout=120)
    known, _ = inspection.resolved(model, environment, found)
    return measure.model_plan(known.name, "train", "quick", known.as_request())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition(",")[0])
    parser.add_argument("--launches", type=int, default=LAUNCHES, help="default: %(default)s")
    parser.add_argument("--model", action="append", choices=tuple(INPUTS), help="default: all")
    arguments, worst = parser.parse_args(), 0.0
    for name in arguments.model or INPUTS:
        plan = plan_of(name)
        ratios = [measure_ratio(ENVIRONMENTS[name], plan, start_loop(name)) for _ in range(arguments.launches)]
        low, middle, high = statistics.median(ratios)
        interval = "unknown" if low is None or high is None else f"[{low:.4f} {high:.4f}]"
        print(f"{name}: {middle:.4f} {interval}", flush=True)
        worst = max(worst, low or 0.0)
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
