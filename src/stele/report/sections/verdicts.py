"""The verdicts: a forest plot of the ratios, and a table of all checks."""

from collections.abc import Iterator, Sequence

from stele.gate import judgement
from stele.gate.outcome import Outcome
from stele.report import charts
from stele.report.content import Chart, Figure, Section, Table, Value

HEAD = (
    "verdict",
    "cell",
    "metric",
    "low",
    "NEW / OLD",
    "high",
    "tolerance",
    "margin",
    "passes",
    "in words",
)
TEXT = (
    "Each line is one metric. The point is the ratio NEW / OLD, and the bar its 98 % interval: more than 1 is slower, "
    "or larger. The dashed tick is the tolerance: growth up to it is accepted. The solid tick is the margin: growth up "
    "to it has to be ruled out for a PASS. The control is OLD beside OLD, measured at the same time: its bar shows the "
    "noise of the machine."
)


def section(gates: Sequence[Outcome]) -> Section | None:
    figures = [figure(gate) for gate in gates]
    return Section("verdicts", "Verdicts", TEXT, figures) if figures else None


def figure(gate: Outcome) -> Figure:
    title = f"Verdicts: {gate.header['old']} to {gate.header['new']}"
    table = Table("verdicts", title, HEAD, list(rows(gate)))
    drawn = [row for row in table.rows if row[4] is not None]
    if not drawn:
        return Figure(table)
    allowed = [column for column in (6, 7) if any(row[column] is not None for row in drawn)]
    spec = charts.forest(HEAD, [str(row[0]) for row in drawn], low=3, middle=4, high=5, allowed=allowed)
    summary = f"Forest plot of {len(drawn)} ratios of NEW to OLD with their intervals. The table has the numbers."
    return Figure(table, [Chart(f"Ratios: {gate.header['old']} to {gate.header['new']}", spec, summary)])


def rows(gate: Outcome) -> Iterator[list[Value]]:
    """Yield a row for each check, the worst first. Thresholds are ratios, as the points are."""
    tolerances, margins = gate.header["tolerances"], gate.header["metrics"]
    for verdict in sorted(gate.verdicts, key=lambda verdict: judgement.STATUSES.index(verdict.status)):
        cell, ratio = f"{verdict.task} {verdict.phase}", verdict.ratio or (None, None, None)
        limits = [1 + values[verdict.metric] if verdict.metric in values else None for values in (tolerances, margins)]
        yield [
            verdict.status,
            cell,
            verdict.metric,
            *ratio,
            *limits,
            verdict.passes,
            " ".join(verdict.message.split()),
        ]
