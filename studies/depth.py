"""How much memory does a layer need, what does recomputation bring, and do independent layers run at the same time?

    python -m studies depth [--framework NAME] [--launches N]
    python -m studies depth --table

Measures the task ``stack`` in every mode of each framework: peak memory at four depths, in inference, in training, and
in training with recomputation; then the step of two branches, and that of a sequence with as many layers, in turns.
Writes docs/results/depth.md. What was measured stays in .stele/depth.jsonl; an interrupted command continues from
there.
"""

import dataclasses
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeVar

import numpy

from stele import environments
from stele.environments import Environment
from stele.measuring import lock, machine, measure, processors
from stele.measuring.run import Options, Run
from stele.measuring.settings import Settings
from stele.report import page
from stele.text import MIB
from stele_suite import tasks
from stele_suite.tasks.stack import DEPTHS, RECOMPUTING
from studies import launches
from studies.ready import environments_with, mode_label

PAGE, FILE = Path(__file__).parents[1] / "docs" / "results" / "depth.md", Path(".stele/depth.jsonl")
KEYS = ("measurement", "result")  # of a line
TASK, STEPS = "stack", 4
ORDER = ("infer", "train")  # of the columns
ONE_THREAD = Settings(device="cpu", threads=1, malloc="plain")
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


Item = TypeVar("Item", "Memory", "Branches")


class Memory(NamedTuple):
    """The peak memory of one kind of step at one depth."""

    environment: str
    kind: str
    depth: int

    def __str__(self) -> str:
        return f"memory {self.environment} {self.depth} layers, {self.kind}"

    def launch(self) -> float:
        """Return the bytes, of the device if it has a memory of its own. Raises measure.SideFailed.

        The smaller one of two processes counts, because all that disturbs adds to a peak. They run at the same time,
        because that changes no peak.
        """
        phase, suffix = KINDS[self.kind]
        environment = without_fragments(environments.load(self.environment))
        groups = processors.lanes(1)[:2] or None
        lanes = [{self.environment: environment} for _ in groups or [None]]
        runs = measure.measure_lanes(
            lanes, [plan(phase, f"depth-{self.depth}{suffix}", STEPS)], ONE_THREAD, groups=groups
        )
        return min(peak(run) for lane in runs for [run] in lane.values())


class Branches(NamedTuple):
    """Two branches, and a sequence of as many layers."""

    environment: str
    phase: str

    def __str__(self) -> str:
        return f"branches {self.environment} {self.phase}"

    def launch(self) -> float:
        """Return the step of the branches over that of the sequence. Raises measure.SideFailed."""
        return self.step("branches") / self.step("sequence")

    def step(self, scale: str) -> float:
        name = self.environment
        settings = Settings(device="cpu", threads=processors.count(), malloc="steady")
        runs = measure.side_by_side({name: environments.load(name)}, plan(self.phase, scale, None), settings)
        return median(runs[name].counted_seconds)


def plan(phase: str, scale: str, steps: int | None) -> measure.Plan:
    fields, _ = measure.inputs(TASK)
    return measure.Plan(task=TASK, phase=phase, scale=scale, options=Options(steps=steps), **fields)


def peak(run: Run) -> float:
    return run.memory.device or run.memory.host or 0


def without_fragments(environment: Environment) -> Environment:
    """Return the environment with an allocator that gives freed arrays back: a peak has no holes of the heap.

    Paddle 1.8 locks 500 MiB for its arrays in the memory, which would hide all peaks.
    """
    own = {"MALLOC_MMAP_THRESHOLD_": str(2**20)}
    if environment.framework == "paddle1":
        own["FLAGS_use_pinned_memory"] = "0"
    return dataclasses.replace(environment, variables={**environment.variables, **own})


def launch(item: Memory | Branches) -> float | str:
    return launches.or_failure(item.launch)


def items() -> tuple[list[Memory], list[Branches]]:
    """Return what is measured of the environments that are ready."""
    ready = {phase: [each.name for each in environments_with(TASK, phase, ONE_THREAD)] for phase in ORDER}
    names = dict.fromkeys(name for of_phase in ready.values() for name in of_phase)
    steps = [
        (name, kind)
        for name in names
        for kind, (phase, suffix) in KINDS.items()
        if name in ready[phase] and not (suffix and is_without_recomputation(environments.load(name)))
    ]
    memory = [Memory(name, kind, depth) for name, kind in steps for depth in DEPTHS]
    return memory, [Branches(name, phase) for name in names for phase in ORDER if name in ready[phase]]


def is_without_recomputation(environment: Environment) -> bool:
    return environment.mode not in RECOMPUTING.get(environment.framework, (environment.mode,))


def memory_row(name: str, kind: str, stored: dict[str, list[Any]]) -> list[str]:
    """Return the peaks, the slope of a line through them, and the slope over the activations of a layer."""
    results = [stored[str(Memory(name, kind, depth))][0] for depth in DEPTHS]
    failed = [result for result in results if isinstance(result, str)]
    if failed:
        return [name, label(name), kind, failed[0]]
    layer = float(numpy.polyfit(DEPTHS, results, 1)[0])
    sizes = [f"{size / MIB:,.0f}" for size in results]
    return [name, label(name), kind, *sizes, f"{layer / MIB:.2f}", f"{layer / activations():.1f}"]


def activations() -> int:
    """Return the bytes of the output of a layer."""
    task = tasks.make(TASK, "paper")
    return 4 * task.batch * task.width


def branches_row(name: str, stored: dict[str, list[Any]]) -> list[str]:
    return [
        name,
        label(name),
        *(ratios(stored.get(str(Branches(name, phase)), [])) for phase in ORDER),
    ]


def ratios(results: Sequence[Any]) -> str:
    """Return the median of the launches, with the smallest and the largest."""
    failed = [result for result in results if isinstance(result, str)]
    if failed or not results:
        return failed[0] if failed else "absent"
    return f"{median(results):.2f} [{min(results):.2f} {max(results):.2f}]"


def label(name: str) -> str:
    return mode_label(environments.load(name))


def markdown(memory: Sequence[Memory], branches: Sequence[Branches], stored: dict[str, list[Any]]) -> str:
    missing = {(item.environment, item.kind) for item in memory if str(item) not in stored}
    rows = [row for row in dict.fromkeys((item.environment, item.kind) for item in memory) if row not in missing]
    compared = dict.fromkeys(item.environment for item in branches if str(item) in stored)
    facts = machine.facts()
    where = f"Measured until {date.today()} on {facts.processor}, {facts.processors} processors"
    return "\n\n".join(
        [
            "**Peak memory over the depth**",
            page.table(MEMORY_HEAD, [memory_row(*row, stored) for row in rows], right=slice(3, None)),
            f"{where}, one thread.",
            "**Two branches, and a sequence of as many layers**",
            page.table(BRANCHES_HEAD, [branches_row(name, stored) for name in compared], right=slice(2, None)),
            f"{where}, a thread for each. The median of the ratios of launches in turns, the smallest and the largest.",
        ]
    )


def main() -> None:
    parser = launches.parser(__doc__, 3, of="of the branches; ", framework="default: all that are ready", table=True)
    arguments = parser.parse_args()
    memory, branches = items()
    if not arguments.table:
        with lock.machine("tox -e studies -- depth", wait=True, say=print):
            launches.measure(FILE, KEYS, of(memory, arguments.framework), 1, launch)
            launches.measure(FILE, KEYS, of(branches, arguments.framework), arguments.launches, launch)
    page.fill(PAGE, markdown(memory, branches, launches.load(FILE, *KEYS)))


def of(found: Sequence[Item], chosen: Sequence[str] | None) -> list[Item]:
    """Return the items of the chosen environments; all if none is chosen."""
    return [item for item in found if not chosen or item.environment in chosen]


if __name__ == "__main__":
    main()
