"""Raw numbers by launch, in the order of time: drift and disturbances are visible here."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from statistics import median

from stele.gate.metrics import ALL, KINDS, Metric
from stele.gate.outcome import MeasuredPass, Outcome
from stele.measuring.run import Run
from stele.report import charts
from stele.report.content import Chart, Figure, Section, Table, Value
from stele.text import MIB

MILLISECONDS = ("step", "latency", "latency-p99", "throughput", "dispatch", "overhead", "fed-step")
POINTER = "Select a name in the legend to highlight it; drag to move the axes; turn the wheel with Shift to zoom."
TEXT = (
    "Each point is one launch: a fresh process. Launches of a pass take turns, so that a disturbance meets all of "
    f"them. If all arms rise or fall together, the machine changed, not the release. {POINTER}"
)
# characters
LONGEST_NAME = 100
SUITE_TEXT = f"Each point is one launch: a fresh process. {POINTER}"


def section(gates: Sequence[Outcome]) -> Section | None:
    figures = [figure for gate in gates for figure in of_gate(gate)]
    return Section("launches", "Launches in order of time", TEXT, figures) if figures else None


def of_gate(gate: Outcome) -> Iterator[Figure]:
    """Yield a figure for each cell and kind of launch."""
    ordered = sorted(
        gate.passes,
        key=lambda pass_: (pass_.cell, list(KINDS).index(pass_.kind) if pass_.kind in KINDS else 99),
    )
    for (cell, kind), passes in groupby(ordered, key=lambda pass_: (pass_.cell, pass_.kind)):
        metrics = [metric for metric in ALL if kind == metric.kinds[0] and metric.name in gate.header["metrics"]]
        complete = [each_pass for each_pass in passes if each_pass.runs]
        if metrics and complete:
            yield figure(cell, kind, metrics, complete)


def figure(cell: str, kind: str, metrics: Sequence[Metric], passes: Sequence[MeasuredPass]) -> Figure:
    head = ["time", "arm", "pass", "counts", *map(title, metrics)]
    rows = sorted((row for pass_ in passes for row in rows_of(pass_, metrics)), key=lambda row: str(row[0]))
    table = Table(anchor(f"launches {cell} {kind}"), f"Launches of {cell}, {kind}", head, rows)
    groups = list(charts.ARMS.values())
    drawn = [
        Chart(
            f"{cell}: {head[number]}",
            charts.launches(head, when=0, value=number, group=1, groups=groups),
            f"{head[number]} of {len(rows)} launches of {cell} in the order of time, by arm.",
        )
        for number in range(4, len(head))
        if any(row[number] is not None for row in rows)
    ]
    return Figure(table, drawn)


def rows_of(pass_: MeasuredPass, metrics: Sequence[Metric]) -> Iterator[list[Value]]:
    excluded = pass_.conditions.excluded if pass_.conditions else None
    for arm, run in pass_.runs.items():
        values = [scaled(metric, metric.value(run)) for metric in metrics]
        yield [moment(run), charts.ARMS.get(arm, arm), pass_.number + 1, excluded or "yes", *values]


def of_runs(runs: Iterable[Run]) -> Iterator[Figure]:
    """Yield a figure for each task and phase of the suite's Runs."""
    metrics = [metric for metric in ALL if metric.name in ("step", "first-step", "import", "host-memory")]
    ordered = sorted(runs, key=lambda run: (run.task, run.phase != "train", run.when))
    for (task, phase), group in groupby(ordered, key=lambda run: (run.task, run.phase)):
        cell, head = f"{task} {phase}", ["time", "environment", *map(title, metrics)]
        head[2] = "step (median), ms"
        rows = [suite_row(run, metrics) for run in group]
        groups = list(dict.fromkeys(str(row[1]) for row in rows))
        spec = charts.launches(head, when=0, value=2, group=1, groups=groups)
        summary = f"Median step of {len(rows)} launches of {cell} in the order of time, by environment."
        table = Table(anchor(f"runs {cell}"), f"Runs of {cell}", head, rows)
        yield Figure(table, [Chart(f"{cell}: {head[2]}", spec, summary)])


def suite_row(run: Run, metrics: Sequence[Metric]) -> list[Value]:
    values = [scaled(metric, metric.value(run)) for metric in metrics[1:]]
    return [moment(run), run.environment, 1e3 * median(run.counted_seconds), *values]


def title(metric: Metric) -> str:
    return f"{metric.name}, {'MiB' if metric.unit == 'bytes' else 'ms' if metric.name in MILLISECONDS else metric.unit}"


def scaled(metric: Metric, value: float | None) -> float | None:
    """Return a value in the unit of ``title``."""
    if value is None:
        return None
    return value / MIB if metric.unit == "bytes" else 1e3 * value if metric.name in MILLISECONDS else value


def moment(run: Run) -> str:
    """Return the end of a launch, to the second, as browsers and spreadsheets read it."""
    return f"{run.when[:19]}Z"


def anchor(text: str) -> str:
    """Return a name for a table, and for a file: letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:LONGEST_NAME].strip("-")
