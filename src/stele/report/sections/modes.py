"""Modes of execution, such as eager and compiled, side by side: what ``studies/modes`` stored in .stele/modes."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from stele.measuring.run import Run
from stele.report import charts
from stele.report.content import Cell, Chart, Figure, Section, Table
from stele.report.sections.launches import anchor
from stele.text import MIB

HEAD = (
    "environment", "least", "time of a step / first mode", "most", "ms/step", "first step, s", "memory, MiB", "passes",
    "failed",
)  # fmt: skip
TEXT = "The time of a step in each mode, divided by that in the first mode in the same pass: less than 1 is faster."


class ModePass(NamedTuple):
    """The Runs of modes that were launched together, and the messages of those that failed, by environment."""

    runs: dict[str, Run]
    failed: dict[str, str]


def section(cells: Mapping[str, Sequence[ModePass]]) -> Section | None:
    figures = [figure(name, passes) for name, passes in cells.items() if any(one.runs for one in passes)]
    return Section("modes", "Modes of execution", TEXT, figures) if figures else None


def figure(name: str, passes: Sequence[ModePass]) -> Figure:
    """Return the figure of a file, ``<environment>-<task>-<phase>``: the environment is that of the first mode."""
    run = next(run for one in passes for run in one.runs.values())
    base = name.removesuffix(f"-{run.task}-{run.phase}")
    cell = f"{base}, {run.task} {run.phase}"
    names = sorted(
        {name for one in passes for name in (*one.runs, *one.failed)}, key=lambda one: (one != base, one)
    )
    table = Table(
        anchor(f"modes {cell}"),
        f"Modes of {cell}",
        HEAD,
        [row(one, base, passes) for one in names],
    )
    summary = f"Time of a step of {cell} in {len(names)} modes, relative to the first mode."
    return Figure(table, [Chart(cell, charts.ranges(HEAD, name=0, low=1, middle=2, high=3), summary)])


def row(name: str, base: str, passes: Sequence[ModePass]) -> list[Cell]:
    runs = [one.runs[name] for one in passes if name in one.runs]
    ratios = [step(one.runs[name]) / step(one.runs[base]) for one in passes if {name, base} <= set(one.runs)]
    ends: list[Cell] = [min(ratios), median(ratios), max(ratios)] if ratios else [None, None, None]
    memory = [run.host_memory / MIB for run in runs if run.host_memory is not None]
    numbers: list[Cell] = [
        1e3 * median(map(step, runs)) if runs else None,
        median(run.first_step for run in runs) if runs else None,
        median(memory) if memory else None,
        len(runs),
    ]
    failed = next((one.failed[name] for one in passes if name in one.failed), None)
    return [name, *ends, *numbers, failed]


def step(run: Run) -> float:
    return median(run.counted_seconds)
