"""The lines over the releases of a framework, from the site that ``stele releases report`` publishes."""

from collections.abc import Mapping, Sequence

from stele.releases import trend
from stele.releases.intervals import Pair
from stele.releases.trend import Graph
from stele.report import charts
from stele.report.content import Chart, Figure, Section, Table, Value
from stele.report.sections.launches import anchor

TEXT = "Each point is a release, the oldest on the left. Less is better."
TITLES = {
    "step": "Duration of a step",
    "first_step": "First step",
    "import": "Import",
    "host_memory": "Peak host memory",
    "device_memory": "Peak device memory",
    "error": "Error",
}
UNITS = {"seconds": (1e3, "ms"), "bytes": (2**-20, "MiB"), "fraction": (1e2, "%")}
LOW, HIGH, LEVEL, STEP = "98 % interval, low", "98 % interval, high", "level", "step"


def section(graphs: Sequence[Graph]) -> Section | None:
    figures = [figure(f"{title_of(graph)}, {graph.framework}", graph, graph.line.releases, {}) for graph in graphs]
    return Section("history", "History", TEXT, figures) if figures else None


def title_of(graph: Graph) -> str:
    return f"{TITLES.get(graph.metric, graph.metric)}, {graph.cell}"


def figure(
    title: str, graph: Graph, releases: Sequence[str], intervals: Mapping[str, Pair | None], *, with_steps: bool = False
) -> Figure:
    """Return a line over ``releases``, which may have more than the line, in the unit that people read.

    ``with_steps`` finds its levels and steps, which needs asv. A column without a value is left out.
    """
    factor, unit = UNITS.get(graph.unit, (1.0, graph.unit))
    line = graph.line._replace(values=[factor * value for value in graph.line.values])
    values = dict(zip(line.releases, line.values, strict=True))
    ends = {release: pair for release in releases if (pair := intervals.get(release)) is not None}
    levels = trend.levels(line) if with_steps else []
    heights = {release: level.value for level in levels for release in line.releases[level.start : level.end]}
    steps = {step.release: trend.percent(step.before, step.after) for step in trend.steps(line)} if with_steps else {}
    columns: dict[str, list[Value]] = {
        "release": [release.removeprefix(f"{graph.framework}-") for release in releases],
        unit: [values.get(release) for release in releases],
        LOW: [factor * ends[release][0] if release in ends else None for release in releases],
        HIGH: [factor * ends[release][1] if release in ends else None for release in releases],
        LEVEL: [heights.get(release) for release in releases],
        STEP: [steps.get(release) for release in releases],
    }
    head = [name for name, column in columns.items() if any(value is not None for value in column)]
    rows = list(zip(*(columns[name] for name in head), strict=True))
    spec = charts.history(head, *(head.index(name) if name in head else None for name in (LOW, HIGH, LEVEL, STEP)))
    summary = f"{title} of {len(values)} releases, from {line.releases[0]} to {line.releases[-1]}."
    table = Table(anchor(f"{graph.metric} {graph.cell} {graph.framework}"), title, head, rows)
    return Figure(table, [Chart(title, spec, summary)])
