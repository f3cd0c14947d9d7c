"""Results of the suite: the newest Run of each environment, by task and phase."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import median as middle

from stele.measuring.run import Run
from stele.report import charts, results
from stele.report.content import Chart, Figure, Section, Table, Value
from stele.report.sections import launches
from stele.report.sections.launches import anchor
from stele.statistics import median
from stele.text import MIB, versions
from stele_suite import tasks

HEAD = (
    "environment",
    "low, ms",
    "ms/step",
    "high, ms",
    "samples/s",
    "first step, s",
    "import, s",
    "memory, MiB",
    "{score}",
    "Runs",
    "versions",
    "remarks",
)
TEXT = (
    "The median step of the newest launch of each environment, with its 95 % interval within the launch; launches "
    "differ by more. Each network is the same in every framework."
)


def section(runs: Sequence[Run]) -> Section | None:
    """Return the results; ``runs`` are in the order of time."""
    if not runs:
        return None
    ordered = sorted(runs, key=lambda run: (*results.sort_key(run), run.environment))
    cells = [
        figure(f"{task} {phase}", list(group))
        for (task, phase), group in groupby(ordered, key=lambda run: (run.task, run.phase))
    ]
    return Section("suite", "Results", TEXT, cells)


def history(runs: Sequence[Run]) -> Section | None:
    """Return the Runs in the order of time, if an environment has several of a cell."""
    repeated = len({(run.task, run.phase, run.environment) for run in runs}) < len(runs)
    figures = list(launches.of_runs(runs)) if repeated else []
    return Section("launches", "Launches in order of time", launches.SUITE_TEXT, figures) if figures else None


def figure(cell: str, runs: Sequence[Run]) -> Figure:
    rows = [row(group) for group in by_environment(runs)]
    head = [title.format(score=tasks.score_name(runs[0].task)) for title in HEAD]
    table = Table(anchor(f"results {cell}"), f"Results of {cell}", head, rows)
    spec = charts.ranges(head, name=0, low=1, middle=2, high=3, zero=True)
    summary = f"Milliseconds of a step of {cell} in {len(rows)} environments. Less is faster."
    return Figure(table, [Chart(f"{cell}: ms/step", spec, summary)])


def by_environment(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Yield the Runs of each environment, the fastest environment first."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.environment, []).append(run)
    yield from sorted(groups.values(), key=lambda group: middle(group[-1].counted_seconds))


def row(runs: Sequence[Run]) -> list[Value]:
    run = max(runs, key=lambda run: run.when)
    step = median([1e3 * value for value in run.counted_seconds])
    memory = None if run.memory.host is None else run.memory.host / MIB
    return [
        run.environment,
        *step,
        1e3 * run.steps.batch / step.middle,
        run.first_step,
        run.framework.import_seconds,
        memory,
        run.learning.accuracy,
        len(runs),
        versions(run.framework.versions),
        ", ".join(results.caveats(run)),
    ]
