"""docs/results/modes.svg: how much faster a graph is than eager execution, by framework and task."""

from collections.abc import Collection, Iterator
from pathlib import Path

from table import TITLES

from stele import environments, files
from stele.report import charts, page

CHART = charts.heat_maps(
    name=0,
    cell=1,
    across=2,
    ratio=3,
    text=4,
    title="time of a step in eager mode / of the graph: above 1 the graph is faster",
)


def draw(text: str, path: Path) -> None:
    """Draw the tables of the page, training beside inference."""
    rows = [
        [framework, task, title, ratio, f"{ratio:.2g}"]
        for phase, title in TITLES.items()
        for framework, task, ratio in speedups(text, phase)
    ]
    order = environments.first_modes()
    files.write_text(path, charts.to_svg(CHART, sorted(rows, key=lambda row: order.index(row[0]))))


def speedups(text: str, phase: str) -> Iterator[tuple[str, str, float]]:
    """Yield framework, task, and the time of a step in eager mode over that of the graph, from the tables of a page."""
    for title, rows in page.read_tables(text):
        task, _, of_phase = title.removeprefix("### ").partition(", ")
        times = {row["environment"]: row.get("ms/step", "") for row in rows}
        steps = {name: float(time.replace(",", "")) for name, time in times.items() if time[:1].isdecimal()}
        for base in environments.first_modes() if of_phase == TITLES[phase] else ():
            eager, graph = pair(base, task, phase, steps)
            if eager and graph:
                yield base, task, steps[eager] / steps[graph]


def pair(base: str, task: str, phase: str, measured: Collection[str]) -> tuple[str | None, str | None]:
    """Return the first eager environment of a framework in a cell that was measured, and the first that is a graph."""
    described = environments.described().items()
    names = [name for name, environment in described if name in measured and base in (name, environment.base)]
    eager = [name for name in names if {phase, task} & set(environments.load(name).eager)]
    graph = [name for name in names if name not in eager]
    return next(iter(eager), None), next(iter(graph), None)
