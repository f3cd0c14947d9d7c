"""docs/results/modes.svg: how much faster a graph is than eager execution, by framework and task."""

from pathlib import Path

from record import PHASES, Cell, Pass
from table import TITLES, middle, ratios

from stele import environments

LIMIT = 8.0  # of the axis; a longer bar is cut, and has its number


def speedups(results: dict[Cell, list[Pass]], phase: str) -> dict[str, dict[str, float]]:
    """Return {framework: {task: time of a step in eager mode over that of the graph}}."""
    found: dict[str, dict[str, float]] = {}
    for cell, passes in results.items():
        eager, graph = pair(cell, {name for one in passes for name in one.runs})
        of_passes = ratios(eager, graph, passes) if cell.phase == phase and eager and graph else []
        if of_passes:
            found.setdefault(cell.base, {})[cell.task] = middle(of_passes)
    return found


def pair(cell: Cell, measured: set[str]) -> tuple[str | None, str | None]:
    """Return the first eager environment of a framework in a cell that was measured, and the first that is a graph."""
    known = environments.described().items()
    names = [name for name, one in known if name in measured and cell.base in (name, one.base)]
    eager = [name for name in names if {cell.phase, cell.task} & set(environments.load(name).eager)]
    graph = [name for name in names if name not in eager]
    return next(iter(eager), None), next(iter(graph), None)


def draw(results: dict[Cell, list[Pass]], path: Path) -> None:
    """Draw the bars of training and inference, one below the other."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "stele"  # equal results give an equal file
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 1, figsize=(10, 7), layout="constrained")
    for phase, axis in zip(PHASES, axes, strict=True):
        draw_phase(axis, speedups(results, phase), TITLES[phase])
    figure.savefig(path, metadata={"Date": None})


def draw_phase(axis, of_frameworks: dict[str, dict[str, float]], title: str) -> None:
    names = sorted({task for of_tasks in of_frameworks.values() for task in of_tasks})
    width = 0.8 / max(len(of_frameworks), 1)
    for number, (framework, of_tasks) in enumerate(of_frameworks.items()):
        places = [names.index(task) + number * width for task in of_tasks]
        bars = axis.bar(places, [min(value, LIMIT) for value in of_tasks.values()], width, label=framework)
        axis.bar_label(bars, [f"{value:.2g}" for value in of_tasks.values()], fontsize=6)
    axis.axhline(1, color="black", linewidth=0.8)
    axis.set_xticks([number + 0.4 - width / 2 for number in range(len(names))], names)
    axis.set_ylabel("eager time / graph time")
    axis.set_title(f"{title}: above 1 the graph is faster")
    if of_frameworks:
        axis.legend(fontsize=7)
