"""What the suite costs: the step time that it reports over that of a bare loop, in fresh processes that take turns.

    python perf_tests/harness.py [--launches N] [--cell FRAMEWORK/TASK/PHASE ...]

Each launch starts a worker, as the suite does, and ``bare.py``, which make their steps in turns: on a shared machine
two launches one after the other differ by more than is asked for here, two neighbouring steps hardly do. A launch
gives the median ratio of its steady steps; a line a cell: the median of the launches and its 95 % interval.
Ends with 1 if a whole interval lies above 1.01. Leave the machine alone while it runs.
"""

import argparse
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from stele import environments, statistics
from stele.gate.metrics import neighbours
from stele.measuring import measure
from stele.measuring.settings import Settings
from stele.measuring.worker import live

LIMIT = 1.01
CELLS = ("torch/gru/infer", "torch/gru/train", "jax/gru/train", "torch/cnn/train")
SETTINGS = Settings(device="cpu", threads=1)
LAUNCHES = 10  # of fewer than six a median has no interval of 95 %


def bare(cell: str, plan: measure.Plan) -> subprocess.Popen[str]:
    """A bare loop, which waits for its turn."""
    assert plan.data is not None
    script = Path(__file__).with_name("bare.py")
    arguments = [*cell.split("/"), str(SETTINGS.threads), plan.data["train_x"], plan.data["train_y"]]
    return subprocess.Popen(
        [sys.executable, script, *arguments],
        env={**os.environ, **SETTINGS.variables()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def step(loop: subprocess.Popen[str]) -> float:
    """How long its next step takes, in seconds."""
    assert loop.stdin is not None and loop.stdout is not None
    print(file=loop.stdin, flush=True)
    return float(loop.stdout.readline())


def ratio(cell: str, plan: measure.Plan) -> float:
    """The median ratio of neighbouring steps, the suite's over the bare loop's, in one launch of both."""
    environment, seconds = environments.load(cell.partition("/")[0]), []
    with live(environment, SETTINGS) as worker, bare(cell, plan) as loop:
        going = measure.measuring(worker, plan, SETTINGS, turn=1)
        try:
            while True:
                next(going)
                seconds.append(step(loop))
        except StopIteration as end:
            run = end.value
    assert len(seconds) == len(run.seconds)
    return math.exp(neighbours(replace(run, seconds=tuple(seconds)), run))


def ratios(cell: str, launches: int) -> list[float]:
    _, task, phase = cell.split("/")
    fields, _ = measure.inputs(task)
    plan = measure.Plan(task=task, phase=phase, scale="gate", **fields)
    found = []
    for launch in range(launches):
        found.append(ratio(cell, plan))
        print(f"{cell}: launch {launch + 1} of {launches}: {found[-1]:.4f}", file=sys.stderr)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--launches", type=int, default=LAUNCHES, help="default: %(default)s")
    parser.add_argument("--cell", action="append", help=f"default: {', '.join(CELLS)}")
    chosen, worst = parser.parse_args(), 0.0
    for cell in chosen.cell or CELLS:
        low, middle, high = statistics.median(ratios(cell, chosen.launches))
        interval = "unknown" if low is None or high is None else f"[{low:.4f} {high:.4f}]"
        print(f"{cell}: {middle:.4f} {interval}")
        worst = max(worst, low or 0.0)
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
