"""Peak memory by arm, or by environment."""

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from stele.gate.metrics import LONG, SHORT
from stele.gate.outcome import Outcome
from stele.measuring.run import Run
from stele.report import charts
from stele.report.content import Chart, Figure, Section, Table, Value
from stele.report.sections.launches import anchor
from stele.text import MIB

HEAD = ("of", "least, MiB", "median, MiB", "most, MiB", "launches")
KINDS = {
    "host": "main memory",
    "device": "memory of the device, of arrays",
    "process": "memory of the device, of the process",
}
TEXT = "The most memory that a process used: the median of its launches, and the range."

Groups = dict[str, list[Run]]


def section(gates: Sequence[Outcome], runs: Sequence[Run]) -> Section | None:
    groups = [*map(of_gate, gates), of_runs(runs)]
    figures = [figure for group in groups for figure in figures_of(group)]
    return Section("memory", "Memory", TEXT, figures) if figures else None


def of_gate(gate: Outcome) -> Groups:
    """Return the launches that measure memory, by cell and arm: the short ones; the long ones if there are none."""
    groups: Groups = {}
    kind = SHORT if any(pass_.kind == SHORT for pass_ in gate.passes) else LONG
    for pass_ in gate.passes:
        if pass_.kind == kind:
            for arm in (arm for arm in charts.ARMS if arm in pass_.runs):
                groups.setdefault(f"{pass_.cell}, {charts.ARMS[arm]}", []).append(pass_.runs[arm])
    return groups


def of_runs(runs: Iterable[Run]) -> Groups:
    groups: Groups = {}
    for run in sorted(runs, key=lambda run: (run.task, run.phase, run.environment)):
        groups.setdefault(f"{run.task} {run.phase}, {run.environment}", []).append(run)
    return groups


def figures_of(groups: Groups) -> Iterator[Figure]:
    for field, title in KINDS.items():
        rows = [row for name, runs in groups.items() for row in row_of(name, runs, field)]
        if rows:
            table = Table(anchor(f"{field}_memory"), f"Peak {title}", HEAD, rows)
            spec = charts.ranges(HEAD, name=0, low=1, middle=2, high=3)
            yield Figure(table, [Chart(f"Peak {title}", spec, f"Peak {title} of {len(rows)} groups of launches.")])


def row_of(name: str, runs: Sequence[Run], field: str) -> Iterator[list[Value]]:
    peaks = [getattr(run.memory, field) for run in runs]
    sizes = [peak / MIB for peak in peaks if peak is not None]
    if sizes:
        yield [name, min(sizes), median(sizes), max(sizes), len(sizes)]
