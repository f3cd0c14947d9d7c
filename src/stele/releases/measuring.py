"""Measure releases of one framework side by side.

The releases take turns, so that a difference between them is not a difference between hours. Step times are compared
within a launch, step by step. Other metrics are compared by the medians of several launches of a few steps (see
``stele.gate.metrics``). A release's number is the anchor's number times the ratio of the release to the anchor. The
anchor is a release with saved numbers on this machine. Its numbers do not change, so that lines stay continuous when
the machine's speed changes.
"""

import functools
import math
import operator
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Annotated, NamedTuple

import msgspec

from stele import statistics
from stele.environments import Environment
from stele.gate import steps
from stele.gate.launcher import plan_of
from stele.gate.metrics import METRICS, Metric, launch_settings
from stele.measuring import content, measure, progress, store
from stele.measuring.content import NOTHING, Reads
from stele.measuring.measure import SideFailed
from stele.measuring.run import Run
from stele.measuring.settings import Settings
from stele.releases.intervals import Pair
from stele.schema import about
from stele.subjects import Cell, Subject

RUNS = Path(".stele/releases")  # the Runs of every launch
MAX_RELEASES = 8  # side by side, one process each
ATTEMPTS = 2
LAUNCHES = {"long": 1, "short": 3}  # of each kind, for each launch that the request asks for

Say = Callable[[str], object]
Check = Callable[[Reads], object]
Numbers = dict[str, float]  # by metric, as asv_benchmarks calls them
Runs = dict[str, list[Run]]  # by release, launch by launch
MIN_RATIOS = 3  # for an interval


class NumbersFile(msgspec.Struct, frozen=True):
    """Printed to standard output. `src/stele/releases/asv_benchmarks/recipes.py` reads it.

    The metrics are `step`, `first_step` and `import` in seconds, and `host_memory` and `device_memory` in bytes. A
    metric without a number is absent.
    """

    numbers: Annotated[
        dict[str, dict[str, float]],
        about('by metric, then cell, `"<task> <phase> tuned"` or `"<task> <phase> as-shipped"`: a number'),
    ]


class CellNumbers(NamedTuple):
    """The numbers of a release in one cell and their intervals, or the reason why there are none."""

    numbers: Numbers
    intervals: dict[str, Pair]
    failure: str | None = None


def groups(releases: Sequence[Environment]) -> Iterator[list[Environment]]:
    """Split the releases into groups of similar size, each small enough to be measured beside the anchor."""
    count = math.ceil(len(releases) / (MAX_RELEASES - 1))
    for number in range(count):
        yield list(releases[number::count])


def compare(
    releases: Sequence[Environment],
    anchor: tuple[Environment, Numbers] | None,
    cell: Cell,
    settings: Settings,
    *,
    scale: str,
    launches: int,
    say: Say,
    subject: Subject,
    check: Check = lambda reads: None,
) -> dict[str, CellNumbers]:
    """Measure one cell of each release, and return the outcomes by name.

    ``anchor`` is a release and its saved numbers, or None. ``check`` is called after each launch with what it has read.
    """
    environments = [*releases, *([anchor[0]] if anchor else [])]
    runs: dict[str, Runs] = {}
    failed: dict[str, str] = {}
    for kind, share in LAUNCHES.items():
        working = [environment for environment in environments if environment.name not in failed]
        with progress.counted(f"{cell}: {kind} launches", share * launches) as show:
            runs[kind], failures = rotations(
                working,
                cell,
                kind,
                settings,
                scale=scale,
                launches=share * launches,
                say=say,
                show=show,
                subject=subject,
                check=check,
            )
        failed.update(failures)
    with_runs = [environment.name for environment in environments if environment.name not in failed]
    names = [release.name for release in releases if release.name in with_runs]
    reference = anchor[0].name if anchor and anchor[0].name in with_runs else next(iter(names), "")
    saved = anchor[1] if anchor and reference == anchor[0].name else {}
    outcomes = {name: outcome(runs, name, reference, saved) for name in names}
    return {**{name: CellNumbers({}, {}, reason) for name, reason in failed.items()}, **outcomes}


def rotations(
    environments: Sequence[Environment],
    cell: Cell,
    kind: str,
    settings: Settings,
    *,
    scale: str,
    launches: int,
    say: Say,
    show: Callable[[float], None],
    subject: Subject,
    check: Check = lambda reads: None,
) -> tuple[Runs, dict[str, str]]:
    """Return the Runs of each release, and the reasons why some have none. ``show`` draws the count of launches.

    A release that fails ATTEMPTS times is excluded.
    """
    scale, settings = launch_settings(kind, scale, settings)
    plan = plan_of(cell, scale, subject, steps.of_next_launch(kind, scale, []))
    result: Runs = {environment.name: [] for environment in environments}
    failures: dict[str, list[str]] = {environment.name: [] for environment in environments}
    number = 0
    while number < launches and (
        working := [environment for environment in environments if len(failures[environment.name]) < ATTEMPTS]
    ):
        random.Random(f"{cell} {kind} {number}").shuffle(working)
        try:
            runs = measure.side_by_side({environment.name: environment for environment in working}, plan, settings)
        except SideFailed as error:
            failures[error.side].append(str(error))
            continue
        for name, run in runs.items():
            store.save(run, RUNS)
            result[name].append(run)
            contents = [run.content for run in result[name]]
            content.require_same(contents, f"The launches of {name}", without=content.OF_MODEL)
        check(functools.reduce(operator.or_, (run.reads or NOTHING for run in runs.values()), NOTHING))
        number += 1
        show(number)
        say(f"{cell}: {kind} launch {number} of {launches}, {len(runs)} releases side by side")
    excluded = {name: reasons[-1] for name, reasons in failures.items() if len(reasons) >= ATTEMPTS}
    return {name: runs for name, runs in result.items() if name not in excluded}, excluded


def outcome(runs: dict[str, Runs], name: str, reference: str, saved: Numbers) -> CellNumbers:
    """Return the numbers of one release, by metric, and their intervals.

    A number is that of the reference times the ratio to it. The interval is that of the ratio, so the reference has
    none. ``runs`` are by kind of launch. ``saved`` are the reference's saved numbers; measured ones replace missing
    ones.
    """
    values, intervals = {}, {}
    for metric in METRICS:
        of_kind, key = runs[metric.kinds[-1]], metric.name.replace("-", "_")
        base = median_value(metric, of_kind[reference])
        value = median_value(metric, of_kind[name])
        pairs = zip(of_kind[reference], of_kind[name], strict=True)
        changes = [change for pair in pairs if (change := metric.difference(*pair)) is not None]
        if changes and base is not None:
            values[key] = math.exp(median(changes)) * saved.get(key, base)
            if name != reference and len(changes) >= MIN_RATIOS:
                intervals[key] = interval(changes, values[key])
        elif value is not None:
            values[key] = value
    return CellNumbers(values, intervals)


def interval(changes: Sequence[float], value: float) -> Pair:
    """Return the 98 % interval of a number, from the logarithms of the ratios, whose median the number has."""
    shift, middle = statistics.shift(changes), median(changes)
    low, high = min(shift.low or 0.0, middle), max(shift.high or 0.0, middle)
    return value * math.exp(low - middle), value * math.exp(high - middle)


def median_value(metric: Metric, runs: Sequence[Run]) -> float | None:
    """Return the median of the launches that have a number, or None."""
    values = [value for run in runs if (value := metric.value(run)) is not None]
    return median(values) if values else None


def measure_error(
    release: Environment, cell: Cell, settings: Settings, *, scale: str, subject: Subject
) -> float | None:
    """Return the error, a fraction, after training from seed 0; None if the task has no meaningful labels."""
    plan = plan_of(cell, scale, subject)
    run = measure.side_by_side({release.name: release}, plan, replace(settings, seed=0))[release.name]
    store.save(run, RUNS)
    return None if run.learning.accuracy is None else 1 - run.learning.accuracy
