"""What do frameworks need beside the step itself? Writes docs/results/metrics.md.

    python -m studies metrics [--framework NAME] [--task NAME] [--launches N]
    python -m studies metrics --table

Measures the metrics that a gate judges only if they are selected, in each environment that is ready. A number is the
median of the launches. What was measured stays in .stele/metrics.jsonl, and every Run in .stele/metrics; an
interrupted command continues from there.
"""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from statistics import median as middle
from typing import Any, NamedTuple

from stele import environments, temporary
from stele.gate.launcher import plan_of
from stele.gate.metrics import (
    ALL,
    BLOCKS,
    KINDS,
    LATENCY,
    LOADER,
    MORE,
    NEW_BATCH,
    PEAK,
    PROFILED,
    SHORT,
    SIZES,
    WARM,
    Metric,
    launch_settings,
)
from stele.gate.steps import of_next_launch
from stele.measuring import lock, machine, measure, processors, store
from stele.measuring.run import PHASES
from stele.measuring.settings import Settings
from stele.report import page
from stele.subjects import Cell, Tasks
from stele_suite import tasks
from studies import launches
from studies.ready import environments_with, mode_label

PAGE = Path(__file__).parents[1] / "docs" / "results" / "metrics.md"
FOLDER, FILE = Path(".stele/metrics"), Path(".stele/metrics.jsonl")
KEYS = ("launch", "result")  # of a line
SETTINGS = Settings(device="cpu", threads=processors.count())
BY_NAME = {metric.name: metric for metric in ALL}
# unit of a metric: factor and digits in the table
SHOWN = {"s": (1e3, 2), "bytes": (2**-20, 0), "count": (1, 0), "fraction": (100, 1)}
# (kind of launch, title, metric)
COLUMNS = (
    (BLOCKS, "step", "step"),
    (BLOCKS, "in a block", "throughput"),
    (BLOCKS, "call returns", "dispatch"),
    (SHORT, "first step", "first-step"),
    (WARM, "cached", "first-step-cached"),
    (NEW_BATCH, "new batch", "first-step-new-batch"),
    (NEW_BATCH, "compilations", "compilations"),
    (SIZES, "overhead", "overhead"),
    (PROFILED, "idle, %", "idle"),
    (LOADER, "loader", "loader"),
    (LOADER, "fed step", "fed-step"),
    (PEAK, "peak memory MiB", "peak-memory"),
    (LATENCY, "one sample", "latency"),
    (LATENCY, "its 99th percentile", "latency-p99"),
)


class Launch(NamedTuple):
    """A launch of one kind. Its result has each metric of a column."""

    environment: str
    cell: Cell
    kind: str

    def __str__(self) -> str:
        return f"{self.environment} {self.cell} {self.kind}"

    def measure(self) -> dict[str, float | None]:
        """Return the metrics of a launch. Raises measure.SideFailed."""
        how, (scale, own) = KINDS[self.kind], launch_settings(self.kind, "gate", SETTINGS)
        plan = plan_of(self.cell, scale, Tasks(), of_next_launch(self.kind, scale, []), how)
        side = {self.environment: environments.load(self.environment)}
        with temporary.folder() as folder:
            for _ in range(1 + how.cached):  # the first fills the caches
                [run] = measure.side_by_side(side, plan, own, caches=folder if how.cached else None).values()
                store.save(run, FOLDER)
        return {name: BY_NAME[name].value(run) for kind, _, name in COLUMNS if kind == self.kind}


def launch(item: Launch) -> dict[str, float | None] | str:
    return launches.or_failure(item.measure)


def columns(cell: Cell) -> list[tuple[str, str, str]]:
    """Return the columns that have a meaning in a cell."""
    return [column for column in COLUMNS if is_measured(BY_NAME[column[2]], cell)]


def is_measured(metric: Metric, cell: Cell) -> bool:
    return cell.phase in metric.phases and (LOADER not in metric.kinds or cell.task in tasks.LOADED)


def items(cell: Cell) -> list[Launch]:
    """Return what is measured of the environments that are ready."""
    kinds = dict.fromkeys(kind for kind, _, _ in columns(cell))
    ready = environments_with(*cell, SETTINGS)
    return [Launch(environment.name, cell, kind) for environment in ready for kind in kinds]


def row(name: str, cell: Cell, stored: dict[str, list[Any]]) -> list[str]:
    """Return the cells of an environment's row. A kind of launch that fails shows "failed"."""
    numbers = [number(stored.get(str(Launch(name, cell, kind)), []), metric) for kind, _, metric in columns(cell)]
    return [name, mode_label(environments.load(name)), *numbers]


def number(results: Sequence[Any], metric: str) -> str:
    """Return the median of the launches as SHOWN says; "failed" if one failed; "" if there is no number."""
    if any(isinstance(result, str) for result in results):
        return "failed"
    factor, digits = SHOWN[BY_NAME[metric].unit]
    values = [result[metric] for result in results if result[metric] is not None]
    return f"{factor * middle(values):,.{digits}f}" if values else ""


def table(cell: Cell, found: Sequence[Launch], stored: dict[str, list[Any]]) -> str:
    """Return the table of a cell, with the environments of which something is stored."""
    names = dict.fromkeys(item.environment for item in found if str(item) in stored)
    header = ("environment", "mode", *(title for _, title, _ in columns(cell)))
    rows = [row(name, cell, stored) for name in names]
    return f"**{cell}**\n\n{page.table(header, rows, right=slice(2, None))}"


def definitions() -> str:
    """Return what each metric means, with its thresholds."""
    rows = [
        [
            metric.name,
            metric.unit,
            metric.meaning,
            f"{metric.tolerance:.0%}",
            f"{metric.margin:.0%}",
            "only if it is selected" if metric in MORE else "yes",
        ]
        for metric in ALL
    ]
    return page.table(("metric", "unit", "how to read it", "tolerance", "margin", "judged by default"), rows)


def provenance(stored: dict[str, list[Any]]) -> str:
    facts, counts = machine.facts(), [len(results) for results in stored.values()]
    launched = " to ".join(map(str, sorted({min(counts, default=0), max(counts, default=0)})))
    return (
        f"Measured until {date.today()} on {facts.processor}, {facts.processors} processors, "
        f"{SETTINGS.threads} threads; medians; launches of each kind: {launched}; times in milliseconds."
    )


def main() -> None:
    parser = launches.parser(__doc__, 3, framework="default: all that are ready", table=True)
    parser.add_argument("--task", action="append", choices=tasks.NAMES, help="default: gru")
    arguments = parser.parse_args()
    cells = [Cell(task, phase) for task in arguments.task or ("gru",) for phase in reversed(PHASES)]
    found = {cell: items(cell) for cell in cells}
    if not arguments.table:
        chosen = [
            item
            for of_cell in found.values()
            for item in of_cell
            if item.environment in (arguments.framework or [item.environment])
        ]
        with lock.machine("tox -e studies -- metrics", wait=True, say=print):
            launches.measure(FILE, KEYS, chosen, arguments.launches, launch)
    stored = launches.load(FILE, *KEYS)
    tables = [table(cell, of_cell, stored) for cell, of_cell in found.items()]
    page.fill(PAGE, "\n\n".join([definitions(), provenance(stored), *tables]))


if __name__ == "__main__":
    main()
