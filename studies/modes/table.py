"""docs/results/modes.md from the recorded passes."""

import textwrap
from collections.abc import Sequence
from statistics import median as middle

from record import SCALE, Cell, Pass

from stele import environments
from stele.measuring.run import Run
from stele.report import page
from stele.statistics import median
from stele.text import milliseconds, period
from studies.ready import mode_label

COSTS = (
    "environment",
    "mode",
    "overhead of an operation µs",
    "first step of training s",
    "first step of inference s",
)
HEADER = ("environment", "mode", "ms/step", "of the first mode", "first step s", "memory MiB", "reported")
TITLES = {"train": "training", "infer": "inference"}
MIB = 2**20
WIDTH = 160  # of a message


def of_task(task: str, results: dict[Cell, list[Pass]]) -> str:
    """Return a table for each phase of a task, and a line on how they were measured."""
    cells = {cell: passes for cell, passes in results.items() if cell.task == task}
    parts = []
    for phase, title in TITLES.items():
        rows = [row for cell, passes in cells.items() if cell.phase == phase for row in rows_of(passes)]
        if rows:
            parts.append(f"### {task}, {title}\n\n{page.table(HEADER, rows, right=slice(2, 6))}")
    return "\n\n".join([*parts, provenance(cells)])


def costs(results: dict[Cell, list[Pass]], overheads: dict[str, str]) -> str:
    """Return a table of the overhead of an operation, and of the first step in the tasks of each phase.

    ``overheads`` are microseconds of an operation by environment, as docs/results/overhead.md shows them.
    """
    measured = {name for passes in results.values() for each_pass in passes for name in each_pass.runs}
    rows = [
        [
            name,
            mode_label(environment),
            overheads.get(name, ""),
            *(first_steps(name, phase, results) for phase in TITLES),
        ]
        for name, environment in environments.described().items()
        if name in measured
    ]
    return page.table(COSTS, rows, right=slice(2, 5))


def first_steps(name: str, phase: str, results: dict[Cell, list[Pass]]) -> str:
    """Return ``4.61 to 7.90``: the shortest and the longest first step of the tasks, or nothing if it has none."""
    of_tasks = [
        middle(steps)
        for cell, passes in results.items()
        if cell.phase == phase
        and (steps := [each_pass.runs[name].first_step for each_pass in passes if name in each_pass.runs])
    ]
    shown = sorted({f"{seconds:.2f}" for seconds in (min(of_tasks), max(of_tasks))}, key=float) if of_tasks else []
    return " to ".join(shown)


def rows_of(passes: Sequence[Pass]) -> list[list[str]]:
    """Return a row for each mode: those that were measured, and those that failed with the reason."""
    names = {name for each_pass in passes for name in (*each_pass.runs, *each_pass.failed)}
    described = environments.described()
    ordered = [name for name in described if name in names]
    return [row(name, passes, first_mode(ordered[0])) for name in ordered]


def first_mode(name: str) -> str:
    return environments.load(name).base or name


def row(name: str, passes: Sequence[Pass], base: str) -> list[str]:
    environment = environments.load(name)
    label = mode_label(environment)
    runs = [each_pass.runs[name] for each_pass in passes if name in each_pass.runs]
    if not runs:
        reasons = [each_pass.failed[name] for each_pass in passes if name in each_pass.failed]
        return [name, label, "failed", "", "", "", textwrap.shorten(reasons[0], WIDTH)]
    return [
        name,
        label,
        milliseconds(middle(step(run) for run in runs)),
        "1" if name == base else ratio(name, base, passes),
        f"{middle(run.first_step for run in runs):.2f}",
        memory(runs),
        reported(runs[-1].in_force),
    ]


def memory(runs: Sequence[Run]) -> str:
    """Return the middle peak of the process, and of the device where it has a memory of its own."""
    host = [run.memory.host for run in runs if run.memory.host]
    device = [run.memory.device for run in runs if run.memory.device]
    shown = f"{middle(host) / MIB:,.0f}" if host else "unknown"
    return f"{shown}, device {middle(device) / MIB:,.0f}" if device else shown


def step(run) -> float:
    """Return the median duration of the counted steps of a Run, in seconds."""
    return median(run.counted_seconds).middle


def ratios(name: str, base: str, passes: Sequence[Pass]) -> list[float]:
    """Return the time of a step over that of another environment, from each pass that has both."""
    return [
        step(each_pass.runs[name]) / step(each_pass.runs[base])
        for each_pass in passes
        if {name, base} <= set(each_pass.runs)
    ]


def ratio(name: str, base: str, passes: Sequence[Pass]) -> str:
    """Return ``0.71 (0.70 to 0.73)``: the middle of the passes, and the range."""
    of_passes = ratios(name, base, passes)
    if not of_passes:
        return "unknown"
    return f"{middle(of_passes):.2f} ({min(of_passes):.2f} to {max(of_passes):.2f})"


def reported(in_force: dict[str, object] | None) -> str:
    return ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in (in_force or {}).items())


def provenance(results: dict[Cell, list[Pass]]) -> str:
    runs = [run for passes in results.values() for each_pass in passes for run in each_pass.runs.values()]
    if not runs:
        return "Nothing is recorded."
    days = sorted({run.when[:10] for run in runs})
    machine = runs[-1].machine
    busy = sum(run.busy for run in runs)
    count = min(len(passes) for passes in results.values())
    return (
        f"Measured {period(days)} on {machine.processor}, "
        f"{machine.processors} processors, {runs[-1].settings.threads} threads, scale {SCALE}, "
        f"{count} pass{'' if count == 1 else 'es'} of each cell. "
        f"{busy} of {len(runs)} launches had other programs beside them."
    )
