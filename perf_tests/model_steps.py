"""Step times through ``--model`` over those of a hand-written loop of the same model, in processes that take turns.

    python perf_tests/model_steps.py [--launches N] [--model NAME ...]

``hand_written.py`` holds the three models and their loops. Prints for each the median ratio of the launches and its
95 % interval. Ends with 1 if an interval is entirely above 1.01. Run nothing else on the machine at the same time.
"""

import argparse
import dataclasses
import math
import os
import subprocess
import sys
from pathlib import Path

from harness import LAUNCHES, LIMIT, SETTINGS, time_step

from stele import environments, statistics
from stele.gate.metrics import paired_difference
from stele.measuring import measure
from stele.measuring.worker import launch
from stele.models import inputs, inspection, spec

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


def measure_ratio(name: str, plan: measure.Plan) -> float:
    """Return the median ratio of adjacent steps, those through ``--model`` over those of the loop, in one launch."""
    environment, seconds = environments.load(ENVIRONMENTS[name]), []
    with launch(environment, SETTINGS) as worker, start_loop(name) as loop:
        steps = measure.measure_steps(worker, plan, SETTINGS, turn=1)
        try:
            while True:
                next(steps)
                seconds.append(time_step(loop))
        except StopIteration as end:
            run = end.value
    return math.exp(paired_difference(dataclasses.replace(run, seconds=tuple(seconds)), run))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition(",")[0])
    parser.add_argument("--launches", type=int, default=LAUNCHES, help="default: %(default)s")
    parser.add_argument("--model", action="append", choices=tuple(INPUTS), help="default: all")
    arguments, worst = parser.parse_args(), 0.0
    for name in arguments.model or INPUTS:
        plan = plan_of(name)
        ratios = [measure_ratio(name, plan) for _ in range(arguments.launches)]
        low, middle, high = statistics.median(ratios)
        interval = "unknown" if low is None or high is None else f"[{low:.4f} {high:.4f}]"
        print(f"{name}: {middle:.4f} {interval}", flush=True)
        worst = max(worst, low or 0.0)
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
