"""What the suite costs: the step time that it reports over that of a bare loop, in alternating fresh processes.

    python perf_tests/harness.py [--pairs N] [--cell FRAMEWORK/TASK/PHASE ...]

Each pair is one launch through host, worker and clock and one of ``bare.py``, in an order drawn at random; each
launch gives the tenth percentile of its steady steps, which what else runs on the machine moves less than their
median. A line a cell: the median ratio of the pairs and its 95 % interval.
Ends with 1 if a whole interval lies above 1.01. Leave the machine alone while it runs.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy

from stele import environments, measure, statistics
from stele.settings import Settings
from stele.worker import live

LIMIT = 1.01
CELLS = ("torch/gru/infer", "torch/gru/train", "jax/gru/train", "torch/cnn/train")
SETTINGS = Settings(device="cpu", threads=1)
SKIPPED = measure.WARMUP["quick"]["most"]  # steps of a bare loop that warm it up, as many as a Plan allows


def reported(cell: str, plan: measure.Plan) -> float:
    """The tenth percentile of the steps that the suite reports, in seconds."""
    environment = environments.load(cell.partition("/")[0])
    with live(environment, SETTINGS) as worker:
        return float(numpy.percentile(measure.measure(worker, plan, SETTINGS).counted, 10))


def bare(cell: str, plan: measure.Plan) -> float:
    """The tenth percentile of a bare loop's steps, in seconds."""
    assert plan.data is not None
    script = Path(__file__).with_name("bare.py")
    arguments = [*cell.split("/"), str(SETTINGS.threads), plan.data["train_x"], plan.data["train_y"]]
    done = subprocess.run(
        [sys.executable, script, *arguments],
        env={**os.environ, **SETTINGS.variables()},
        stdout=subprocess.PIPE,
        check=True,
    )
    return float(numpy.percentile(json.loads(done.stdout.splitlines()[-1])[SKIPPED:], 10))


def ratios(cell: str, pairs: int, order: random.Random) -> list[float]:
    _, task, phase = cell.split("/")
    fields, _ = measure.inputs(task)
    plan = measure.Plan(task=task, phase=phase, scale="quick", **fields)
    found = []
    for pair in range(pairs):
        seconds = {}
        for launch in order.sample([reported, bare], 2):
            seconds[launch] = launch(cell, plan)
        found.append(seconds[reported] / seconds[bare])
        print(f"{cell}: pair {pair + 1} of {pairs}: {found[-1]:.4f}", file=sys.stderr)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--pairs", type=int, default=10, help="default: %(default)s")
    parser.add_argument("--cell", action="append", help=f"default: {', '.join(CELLS)}")
    chosen, worst = parser.parse_args(), 0.0
    order = random.Random(0)
    for cell in chosen.cell or CELLS:
        low, middle, high = statistics.median(ratios(cell, chosen.pairs, order))
        interval = "unknown" if low is None or high is None else f"[{low:.4f} {high:.4f}]"
        print(f"{cell}: {middle:.4f} {interval}")
        worst = max(worst, low or 0.0)
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
