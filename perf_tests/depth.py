"""How much memory does a layer need, what does recomputation bring, and do independent layers run at the same time?

    python perf_tests/depth.py [--framework NAME] [--launches N]      or: tox -e depth

Measures the task ``stack`` in every mode of each framework: peak memory at four depths, in inference, in training, and
in training with recomputation; then the step of two branches, and that of a sequence with as many layers, in turns.
Writes docs/depth.md. Every Run stays in .stele/depth.
"""

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from statistics import median

import numpy

sys.path.insert(0, str(Path(__file__).parents[1]))

from fixtures.ready import environments_with
from stele.environments import Environment
from stele.measuring import lock, machine, measure, processors, store
from stele.measuring.run import Run
from stele.measuring.settings import Settings
from stele.report import page
from stele.text import MIB
from stele_worker import tasks
from stele_worker.tasks.stack import DEPTHS

PAGE, FOLDER = Path(__file__).parents[1] / "docs" / "depth.md", Path(".stele/depth")
TASK, STEPS = "stack", 4
KINDS = {
    "inference": ("infer", ""),
    "training": ("train", ""),
    "training, recomputed": ("train", "-recomputed"),
}
MEMORY_HEAD = (
    "environment",
    "mode",
    "step",
    *(f"{depth} layers, MiB" for depth in DEPTHS),
    "a layer, MiB",
    "a layer / its activations",
)
BRANCHES_HEAD = ("environment", "mode", "inference: branches / sequence", "training: branches / sequence")


def launch(environment: Environment, phase: str, scale: str, settings: Settings, steps: int | None) -> Run:
    """Return the Run of one launch, after it is saved. Raises measure.SideFailed."""
    fields, _ = measure.inputs(TASK)
    plan = measure.Plan(task=TASK, phase=phase, scale=scale, steps=steps, **fields)
    run = measure.side_by_side({environment.name: environment}, plan, settings)[environment.name]
    store.save(run, FOLDER)
    return run


def memory_rows(environment: Environment, settings: Settings, launches: int) -> Iterator[list[str]]:
    for kind, (phase, suffix) in KINDS.items():
        try:
            peaks = [
                peak(environment, phase, f"depth-{depth}{suffix}", settings, launches) for depth in DEPTHS
            ]
        except measure.SideFailed as error:
            yield [environment.name, label(environment), kind, "failed: " + str(error).splitlines()[0]]
            continue
        layer = float(numpy.polyfit(DEPTHS, peaks, 1)[0])
        sizes = [f"{size / MIB:,.0f}" for size in peaks]
        yield [
            environment.name,
            label(environment),
            kind,
            *sizes,
            f"{layer / MIB:.2f}",
            f"{layer / activations():.1f}",
        ]


def without_fragments(environment: Environment) -> Environment:
    """Return the environment with an allocator that gives freed arrays back: a peak has no holes of the heap."""
    return dataclasses.replace(
        environment, variables={**environment.variables, "MALLOC_MMAP_THRESHOLD_": str(2**20)}
    )


def peak(environment: Environment, phase: str, scale: str, settings: Settings, launches: int) -> float:
    """Return the median peak memory of the launches, in bytes: of the device, if it has a memory of its own."""
    runs = [launch(environment, phase, scale, settings, STEPS) for _ in range(launches)]
    return median(run.device_memory or run.host_memory or 0 for run in runs)


def activations() -> int:
    """Return the bytes of the output of a layer."""
    task = tasks.make(TASK, "paper")
    return 4 * task.batch * task.width


def branches_row(environment: Environment, settings: Settings, launches: int) -> list[str]:
    """Return the medians of the ratios of launches, which take turns, with the smallest and the largest."""
    cells = []
    for phase in ("infer", "train"):
        try:
            ratios = sorted(
                step(environment, phase, "branches", settings)
                / step(environment, phase, "sequence", settings)
                for _ in range(launches)
            )
        except measure.SideFailed as error:
            cells.append("failed: " + str(error).splitlines()[0])
        else:
            cells.append(f"{median(ratios):.2f} [{ratios[0]:.2f} {ratios[-1]:.2f}]")
    return [environment.name, label(environment), *cells]


def step(environment: Environment, phase: str, scale: str, settings: Settings) -> float:
    return median(launch(environment, phase, scale, settings, None).counted_seconds)


def label(environment: Environment) -> str:
    return environment.modes[environment.mode]["label"] if environment.mode else ""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--framework", action="append", metavar="NAME", help="default: all that are ready")
    parser.add_argument("--launches", type=int, default=3, metavar="N", help="default: %(default)s")
    arguments = parser.parse_args()
    one = Settings(device="cpu", threads=1, malloc="plain")
    every = Settings(device="cpu", threads=processors.count(), malloc="steady")
    memory, branches = [], []
    with lock.machine("tox -e depth", wait=True, say=print):
        for environment in environments_with(TASK, "infer", one, arguments.framework):
            memory += memory_rows(without_fragments(environment), one, arguments.launches)
            branches.append(branches_row(environment, every, arguments.launches))
            print(*("  ".join(row) for row in (*memory[-len(KINDS) :], branches[-1])), sep="\n", flush=True)
    page.fill(PAGE, markdown(memory, branches, every.threads))


def markdown(memory: list[list[str]], branches: list[list[str]], threads: int) -> str:
    facts = machine.facts()
    where = f"Measured {date.today()} on {facts['processor']}, {facts['processors']} processors"
    return "\n\n".join(
        [
            "**Peak memory over the depth**",
            page.table(MEMORY_HEAD, memory, right=slice(3, None)),
            f"{where}, one thread. Medians of the launches.",
            "**Two branches, and a sequence of as many layers**",
            page.table(BRANCHES_HEAD, branches, right=slice(2, None)),
            f"{where}, {threads} threads. The median of the ratios of launches in turns, the smallest and the largest.",
        ]
    )


if __name__ == "__main__":
    main()
