"""Time to accuracy: the trainings that ``stele time-to-accuracy`` stored, by environment."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from stele.measuring.run import Run
from stele.report import charts
from stele.report import time_to_accuracy as pages
from stele.report.content import Chart, Figure, Section, Table, Value
from stele.report.sections.launches import anchor
from stele.statistics import Estimate
from stele.text import versions
from stele.time_to_accuracy.summary import DEFINITIONS, Summary, summarise
from stele_suite import tasks

HEAD = (
    "environment",
    "low, %",
    "accuracy, %",
    "high, %",
    "seeds",
    "P(target)",
    "s/epoch",
    "training, s (DAWNBench)",
    "training, s (MLPerf)",
    "expected, s",
    "versions",
    "remarks",
)
SEED_HEAD = (
    "environment",
    "seed",
    "training, s (DAWNBench)",
    "accuracy, %",
    "training, s (MLPerf)",
    "epochs",
)
TEXT = (
    "The accuracy after a number of epochs that was fixed in advance, with the 95 % interval of the mean over seeds. "
    "The expected time repeats a training that misses the target. Trainings that were continued have no time."
)

Group = tuple[str, ...]


def section(runs: Sequence[Run]) -> Section | None:
    """Return the trainings to an accuracy, those of one task, scale, division and number of epochs in a table."""
    trainings = sorted(
        (run for run in runs if run.learning.accuracy is not None), key=lambda run: (group(run), run.environment)
    )
    figures = [figure for _, listed in groupby(trainings, key=group) for figure in figures_of(list(listed))]
    return Section("time-to-accuracy", "Time to accuracy", TEXT, figures) if figures else None


def group(run: Run) -> Group:
    tricks = ",".join(run.options.tricks or ())
    return (run.task, run.scale, run.division, str(len(run.steps.seconds)), tricks)


def figures_of(runs: Sequence[Run]) -> Iterator[Figure]:
    run, target = runs[0], tasks.target(runs[0].task, runs[0].scale)
    aim = "no target" if target is None else f"target {target:.0%}"
    title = f"{run.task}, scale {run.scale}, {run.division} division, {len(run.steps.seconds)} epochs, {aim}"
    by_environment = [list(listed) for _, listed in groupby(runs, key=lambda run: run.environment)]
    rows = [row(summarise(seeds, 1.0 if target is None else target), target) for seeds in by_environment]
    name = anchor(" ".join(["accuracy", *group(run)[:4]]))
    spec = charts.ranges(HEAD, name=0, low=1, middle=2, high=3)
    yield Figure(
        Table(name, title, HEAD, rows),
        [Chart(f"{run.task}: accuracy", spec, f"Mean accuracy of {len(rows)} environments.")],
    )
    seeds = [seed_row(run) for run in runs]
    spec = charts.scatter(SEED_HEAD, x=2, y=3, group=0)
    yield Figure(
        Table(f"{name}-seeds", f"Each training of {title}", SEED_HEAD, seeds),
        [Chart(f"{run.task}: time and accuracy", spec, f"Time and accuracy of {len(seeds)} trainings.")],
    )


def row(summary: Summary, target: float | None) -> list[Value]:
    run, accuracy = summary.runs[0], summary.accuracy
    times = summary.times["DAWNBench"]
    reached = target is not None
    return [
        run.environment,
        *(None if value is None else 100 * value for value in accuracy),
        len(summary.runs),
        summary.probability.middle if reached else None,
        summary.epoch.middle,
        *(None if clock is None else clock.mean.middle for clock in summary.times.values()),
        middle(times.expected) if reached and times is not None else None,
        versions(run.framework.versions),
        ", ".join(pages.notes(summary)),
    ]


def middle(value: Estimate | None) -> float | None:
    return None if value is None else value.middle


def seed_row(run: Run) -> list[Value]:
    dawnbench, mlperf = (clock(run) for clock in DEFINITIONS.values())
    accuracy = None if run.learning.accuracy is None else 100 * run.learning.accuracy
    return [run.environment, run.settings.seed, dawnbench, accuracy, mlperf, len(run.steps.seconds)]
