"""Warm-up curves: how long the first steps take, and when the duration becomes steady."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import numpy

from stele.gate.metrics import LONG
from stele.gate.outcome import Outcome
from stele.measuring.run import Run
from stele.report import charts
from stele.report.content import Chart, Figure, Section, Table, Value
from stele.report.sections.launches import anchor

# steps that are shown; later ones are farther apart
POINTS = 40
PERCENTILES = (10, 50, 90)
HEAD = ("step", "arm", "10 % of launches, ms", "median, ms", "90 % of launches, ms", "launches")
TEXT = (
    "The line is the median over the launches, and the area has the middle 80 % of them. The first step includes "
    "tracing, compilation and allocation. Both axes are logarithmic."
)


def section(gates: Sequence[Outcome], runs: Sequence[Run]) -> Section | None:
    figures = [*(figure for gate in gates for figure in of_gate(gate)), *of_runs(runs)]
    return Section("warm-up", "Warm-up", TEXT, figures) if figures else None


def of_gate(gate: Outcome) -> Iterator[Figure]:
    passes = sorted((pass_ for pass_ in gate.passes if pass_.kind == LONG), key=lambda pass_: pass_.cell)
    for cell, group in groupby(passes, key=lambda pass_: pass_.cell):
        listed = list(group)
        arms = {
            name: [pass_.runs[arm].steps.seconds for pass_ in listed if arm in pass_.runs]
            for arm, name in charts.ARMS.items()
        }
        if any(arms.values()):
            yield figure(cell, arms)


def of_runs(runs: Iterable[Run]) -> Iterator[Figure]:
    ordered = sorted(runs, key=lambda run: (run.task, run.phase != "train", run.environment))
    for cell, group in groupby(ordered, key=lambda run: f"{run.task} {run.phase}"):
        by_name: dict[str, list[Sequence[float]]] = {}
        for run in group:
            by_name.setdefault(run.environment, []).append(run.steps.seconds)
        yield figure(cell, by_name)


def figure(cell: str, groups: Mapping[str, Sequence[Sequence[float]]]) -> Figure:
    rows = [row for name, launches in groups.items() for row in curve(name, launches)]
    table = Table(anchor(f"warm-up {cell}"), f"Duration of the first steps of {cell}", HEAD, rows)
    summary = f"Duration of each step of {cell}, from the first one on, by arm."
    return Figure(table, [Chart(f"{cell}: warm-up", charts.warm_up(HEAD, list(groups)), summary)])


def curve(name: str, launches: Sequence[Sequence[float]]) -> Iterator[list[Value]]:
    """Yield a row for each step that is shown: its percentiles over the launches that have it, in milliseconds."""
    longest = max(map(len, launches), default=0)
    for step in shown_steps(longest):
        values = [seconds[step - 1] for seconds in launches if len(seconds) >= step]
        yield [
            step,
            name,
            *(1e3 * float(value) for value in numpy.percentile(values, PERCENTILES)),
            len(values),
        ]


def shown_steps(count: int) -> list[int]:
    """Return at most POINTS of the steps 1 to ``count``: the distances between them grow."""
    if count <= POINTS:
        return list(range(1, count + 1))
    return sorted({round(value) for value in numpy.geomspace(1, count, POINTS)})
