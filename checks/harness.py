"""What the suite costs: its reported step time over that of a bare loop, in fresh processes that take turns.

    python -m checks harness [--launches N] [--cell FRAMEWORK/TASK/PHASE ...]

Each launch starts a worker, as the suite does, and ``bare.py``. The two alternate step by step: on a shared machine,
two launches one after the other differ by more than the limit of this test, but two adjacent steps hardly differ. A
launch gives the median ratio of its steady steps. Prints for each cell the median of the launches and its 95 %
interval. Ends with 1 if an interval is entirely above 1.01. Run nothing else on the machine at the same time.
"""

import argparse
import math
import os
import subprocess
import sys
from pathlib import Path

from msgspec.structs import replace

from stele import environments, statistics
from stele.gate.metrics import METRICS
from stele.measuring import measure
from stele.measuring.settings import Settings
from stele.measuring.worker import launch

LIMIT = 1.01
CELLS = ("torch/gru/infer", "torch/gru/train", "jax/gru/train", "torch/cnn/train")
# the allocator of a gate: with the C library's own, the heap of one of both processes may shrink after each step
SETTINGS = Settings(device="cpu", threads=1, malloc="steady")
LAUNCHES = 10  # a median of fewer than six has no 95 % interval


def start_bare_loop(cell: str, plan: measure.Plan) -> subprocess.Popen[str]:
    """Start a bare loop, which makes a step each time it is asked to."""
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


def time_step(loop: subprocess.Popen[str]) -> float:
    """Return the seconds of the bare loop's next step."""
    assert loop.stdin is not None and loop.stdout is not None
    print(file=loop.stdin, flush=True)
    return float(loop.stdout.readline())


def measure_ratio(name: str, plan: measure.Plan, loop: subprocess.Popen[str]) -> float:
    """Return the median ratio of adjacent steps, the suite's over the loop's, in one launch of both.

    ``name`` is the environment of the suite.
    """
    environment, seconds = environments.load(name), []
    with launch(environment, SETTINGS) as worker, loop:
        for run in measure.measure_steps(worker, [plan], SETTINGS, turn=1):
            if run is None:
                seconds.append(time_step(loop))
    assert len(seconds) == len(run.steps.seconds)
    by_hand = replace(run, steps=replace(run.steps, seconds=tuple(seconds)))
    difference = METRICS[0].difference(by_hand, run)
    assert difference is not None
    return math.exp(difference)


def measure_ratios(cell: str, launches: int) -> list[float]:
    _, task, phase = cell.split("/")
    fields, _ = measure.inputs(task)
    plan = measure.Plan(task=task, phase=phase, scale="gate", **fields)
    ratios = []
    for number in range(launches):
        ratios.append(measure_ratio(cell.partition("/")[0], plan, start_bare_loop(cell, plan)))
        print(f"{cell}: launch {number + 1} of {launches}: {ratios[-1]:.4f}", file=sys.stderr)
    return ratios


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--launches", type=int, default=LAUNCHES, help="default: %(default)s")
    parser.add_argument("--cell", action="append", help=f"default: {', '.join(CELLS)}")
    arguments, worst = parser.parse_args(), 0.0
    for cell in arguments.cell or CELLS:
        low, middle, high = statistics.median(measure_ratios(cell, arguments.launches))
        interval = "unknown" if low is None or high is None else f"[{low:.4f} {high:.4f}]"
        print(f"{cell}: {middle:.4f} {interval}")
        worst = max(worst, low or 0.0)
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
