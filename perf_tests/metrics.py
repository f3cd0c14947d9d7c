"""What do frameworks need beside the step itself? Writes docs/metrics.md.

    python perf_tests/metrics.py [--framework NAME] [--task NAME] [--launches N]      or: tox -e metrics

Measures the metrics that a gate judges only if they are selected, in each environment that is ready. A number is the
median of the launches. Every Run stays in .stele/metrics.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from statistics import median as middle

sys.path.insert(0, str(Path(__file__).parents[1]))

from fixtures.ready import environments_with, mode_label
from stele import temporary
from stele.environments import Environment
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
from stele.gate.trial import Cell
from stele.measuring import lock, machine, measure, processors, store
from stele.measuring.run import PHASES, Run
from stele.measuring.settings import Settings
from stele.report import page
from stele_worker import tasks

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"
FOLDER = Path(".stele/metrics")
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


def launches(environment: Environment, cell: Cell, kind: str, settings: Settings, count: int) -> list[Run]:
    """Return the Runs of launches of a kind; without the one that fills the caches, if the kind needs them."""
    scale, own = launch_settings(kind, "gate", settings)
    plan = plan_of(cell, scale, None, of_next_launch(kind, scale, []), KINDS[kind])
    side, runs = {environment.name: environment}, list[Run]()
    with temporary.folder() as folder:
        caches = folder if KINDS[kind].cached else None
        for _ in range(count + bool(caches)):
            runs += measure.side_by_side(side, plan, own, caches=caches).values()
            store.save(runs[-1], FOLDER)
    return runs[-count:]


def row(environment: Environment, cell: Cell, settings: Settings, count: int) -> list[str]:
    """Return the cells of an environment's row. A kind of launch that fails shows "failed"."""
    runs: dict[str, list[Run] | None] = {}
    for kind in dict.fromkeys(kind for kind, _, name in COLUMNS if is_measured(BY_NAME[name], cell)):
        try:
            runs[kind] = launches(environment, cell, kind, settings, count)
        except measure.SideFailed as error:
            print(f"{environment.name} {cell} {kind}: {error}", file=sys.stderr)
            runs[kind] = None
    mode = mode_label(environment)
    return [environment.name, mode, *(number(runs.get(kind, []), name) for kind, _, name in COLUMNS)]


def is_measured(metric: Metric, cell: Cell) -> bool:
    """Return whether a metric has a meaning in a cell."""
    return cell.phase in metric.phases and (LOADER not in metric.kinds or cell.task in tasks.LOADED)


def number(runs: list[Run] | None, metric: str) -> str:
    """Return the median of the launches as SHOWN says; "failed", or "" if there was nothing to launch."""
    if runs is None:
        return "failed"
    factor, digits = SHOWN[BY_NAME[metric].unit]
    values = [value for run in runs if (value := BY_NAME[metric].value(run)) is not None]
    return f"{factor * middle(values):,.{digits}f}" if values else ""


def definitions() -> str:
    """Return what each metric means, with its thresholds."""
    rows = [
        [metric.name, metric.unit, metric.meaning, f"{metric.tolerance:.0%}", f"{metric.margin:.0%}",
         "only if it is selected" if metric in MORE else "yes"]
        for metric in ALL
    ]  # fmt: skip
    return page.table(("metric", "unit", "how to read it", "tolerance", "margin", "judged by default"), rows)


def provenance(settings: Settings, count: int) -> str:
    facts = machine.facts()
    return (
        f"Measured {date.today()} on {facts['processor']}, {facts['processors']} processors, {settings.threads} "
        f"threads; medians of {count} launches; times in milliseconds."
    )


def write(tables: Sequence[str], settings: Settings, count: int) -> None:
    page.fill(PAGE, "\n\n".join([definitions(), provenance(settings, count), *tables]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--framework", action="append", metavar="NAME", help="default: all that are ready")
    parser.add_argument("--task", action="append", choices=tasks.NAMES, help="default: gru")
    parser.add_argument("--launches", type=int, default=3, metavar="N", help="default: %(default)s")
    arguments = parser.parse_args()
    settings, written = Settings(device="cpu", threads=processors.count()), list[str]()
    with lock.machine("tox -e metrics", wait=True, say=print):
        for cell in [Cell(task, phase) for task in arguments.task or ("gru",) for phase in reversed(PHASES)]:
            rows = []
            for environment in environments_with(*cell, settings, arguments.framework):
                rows.append(row(environment, cell, settings, arguments.launches))
                print("  ".join([str(cell), *rows[-1]]), flush=True)
            header = ("environment", "mode", *(title for _, title, _ in COLUMNS))
            written.append(f"**{cell}**\n\n{page.table(header, rows, right=slice(2, None))}")
            write(written, settings, arguments.launches)


if __name__ == "__main__":
    main()
