"""The lines over the releases of a framework, from the site that ``stele releases report`` publishes."""

from collections.abc import Sequence

from stele.releases.trend import Line
from stele.report import charts
from stele.report.content import Cell, Chart, Figure, Section, Table
from stele.report.sections.launches import anchor

TEXT = "Each point is a release, the oldest on the left. Less is better."


def section(lines: Sequence[tuple[str, Line]]) -> Section | None:
    figures = [figure(name, line) for name, line in lines]
    return Section("history", "History", TEXT, figures) if figures else None


def figure(name: str, line: Line) -> Figure:
    head = ("release", name)
    rows: list[list[Cell]] = [list(row) for row in zip(line.releases, line.values, strict=True)]
    table = Table(anchor(f"history {name}"), f"History: {name}", head, rows)
    summary = f"{name} of {len(rows)} releases, from {line.releases[0]} to {line.releases[-1]}."
    return Figure(table, [Chart(name, charts.history(head), summary)])
