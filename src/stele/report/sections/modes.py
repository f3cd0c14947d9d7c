"""Modes of execution, such as eager and compiled, side by side: what ``studies/modes`` stored in .stele/modes."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from stele.measuring.run import Run
from stele.report import charts
from stele.report.content import Chart, Figure, Section, Table, Value
from stele.report.sections.launches import anchor
from stele.text import MIB

HEAD = (
    "environment",
    "least",
    "time of a step / first mode",
    "most",
    "ms/step",
    "first step, s",
    "memory, MiB",
    "passes",
    "failed",
)
TEXT = "The time of a step in each mode, divided by that in the first mode in the same pass: less than 1 is faster."


class ModePass(NamedTuple):
    """The Runs of modes that were launched together, and the messages of those that failed, by environment."""

    runs: dict[str, Run]
    failed: dict[str, str]


def section(cells: Mapping[str, Sequence[ModePass]]) -> Section | None:
    figures = [figure(name, passes) for name, passes in cells.items() if any(each_pass.runs for each_pass in passes)]
    return Section("modes", "Modes of execution", TEXT, figures) if figures else None


def figure(name: str, passes: Sequence[ModePass]) -> Figure:
    """Return the figure of a file, ``<environment>-<task>-<phase>``: the environment is that of the first mode."""
    run = next(run for each_pass in passes for run in each_pass.runs.values())
    base = name.removesuffix(f"-{run.task}-{run.phase}")
    cell = f"{base}, {run.task} {run.phase}"
    names = sorted(
        {name for each_pass in passes for name in (*each_pass.runs, *each_pass.failed)},
        key=lambda mode: (mode != base, mode),
    )
    table = Table(
        anchor(f"modes {cell}"),
        f"Modes of {cell}",
        HEAD,
        [row(mode, base, passes) for mode in names],
    )
    summary = f"Time of a step of {cell} in {len(names)} modes, relative to the first mode."
    return Figure(table, [Chart(cell, charts.ranges(HEAD, name=0, low=1, middle=2, high=3), summary)])


def row(name: str, base: str, passes: Sequence[ModePass]) -> list[Value]:
    runs = [each_pass.runs[name] for each_pass in passes if name in each_pass.runs]
    ratios = [
        step(each_pass.runs[name]) / step(each_pass.runs[base])
        for each_pass in passes
        if {name, base} <= set(each_pass.runs)
    ]
    ends: list[Value] = [min(ratios), median(ratios), max(ratios)] if ratios else [None, None, None]
    memory = [run.memory.host / MIB for run in runs if run.memory.host is not None]
    numbers: list[Value] = [
        1e3 * median(map(step, runs)) if runs else None,
        median(run.first_step for run in runs) if runs else None,
        median(memory) if memory else None,
        len(runs),
    ]
    failed = next((each_pass.failed[name] for each_pass in passes if name in each_pass.failed), None)
    return [name, *ends, *numbers, failed]


def step(run: Run) -> float:
    return median(run.counted_seconds)
