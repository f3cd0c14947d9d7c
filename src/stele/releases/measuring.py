"""Releases of one framework measured side by side: they take turns, so that one line shows them and not the hours.

Steps are told apart within a launch, where releases follow one another step by step; all else by the medians of
launches of a few steps, of which there are more (``stele.gate.metrics``). What a release takes is what the anchor
takes, times that ratio; the anchor is a release that is known on this machine already, and keeps its numbers, so that a
line goes on tomorrow where it is today.
"""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from stele.environments import Environment
from stele.gate.metrics import METRICS, Metric, of_launch
from stele.gate.trial import Cell
from stele.measuring import measure, store
from stele.measuring.measure import SideFailed
from stele.measuring.run import Run
from stele.measuring.settings import Settings

RUNS = Path(".stele/releases")  # the raw outcome of every launch
MOST = 8  # releases side by side: as many processes
ATTEMPTS = 2
LAUNCHES = {"long": 1, "short": 3}  # of each kind, for one that is asked for

Say = Callable[[str], object]
Numbers = dict[str, float]  # by metric, as asv_benchmarks calls them
Runs = dict[str, list[Run]]  # by release, launch by launch


class Outcome(NamedTuple):
    """What came of a release's launches of one cell: its numbers, or why it has none."""

    numbers: Numbers
    complaint: str | None = None


def groups(releases: Sequence[Environment]) -> Iterator[list[Environment]]:
    """As many at a time as fit beside the anchor, of about the same size."""
    count = math.ceil(len(releases) / (MOST - 1))
    for number in range(count):
        yield list(releases[number::count])


def compared(
    releases: Sequence[Environment],
    anchor: tuple[Environment, Numbers] | None,
    cell: Cell,
    settings: Settings,
    *,
    scale: str,
    launches: int,
    say: Say,
) -> dict[str, Outcome]:
    """Each release's numbers of one cell, by name. ``anchor`` is a release with known ones."""
    rows = [*releases, *([anchor[0]] if anchor else [])]
    found: dict[str, Runs] = {}
    failed: dict[str, str] = {}
    for kind, share in LAUNCHES.items():
        working = [row for row in rows if row.name not in failed]
        found[kind], broken = rotations(
            working, cell, kind, settings, scale=scale, launches=share * launches, say=say
        )
        failed.update(broken)
    able = [row.name for row in rows if row.name not in failed]
    names = [row.name for row in releases if row.name in able]
    reference = anchor[0].name if anchor and anchor[0].name in able else next(iter(names), "")
    known = anchor[1] if anchor and reference == anchor[0].name else {}
    outcomes = {name: Outcome(numbers(found, name, reference, known)) for name in names}
    return {**{name: Outcome({}, why) for name, why in failed.items()}, **outcomes}


def rotations(
    rows: Sequence[Environment],
    cell: Cell,
    kind: str,
    settings: Settings,
    *,
    scale: str,
    launches: int,
    say: Say,
) -> tuple[Runs, dict[str, str]]:
    """The Runs of each release, and why some have none. One that fails twice is left out."""
    fields, _ = measure.inputs(cell.task)
    scale, settings = of_launch(kind, scale, settings)
    plan = measure.Plan(task=cell.task, phase=cell.phase, scale=scale, **fields)
    found: Runs = {row.name: [] for row in rows}
    failures: dict[str, list[str]] = {row.name: [] for row in rows}
    number = 0
    while number < launches and (working := [row for row in rows if len(failures[row.name]) < ATTEMPTS]):
        random.Random(f"{cell} {kind} {number}").shuffle(working)
        try:
            runs = measure.side_by_side({row.name: row for row in working}, plan, settings)
        except SideFailed as error:
            failures[error.side].append(str(error))
            continue
        for name, run in runs.items():
            store.save(run, RUNS)
            found[name].append(run)
        number += 1
        say(f"{cell}: {kind} launch {number} of {launches}, {len(runs)} releases side by side")
    given_up = {name: said[-1] for name, said in failures.items() if len(said) >= ATTEMPTS}
    return {name: runs for name, runs in found.items() if name not in given_up}, given_up


def numbers(found: dict[str, Runs], name: str, reference: str, known: Numbers) -> Numbers:
    """The metrics of one release, by way of the reference, whose numbers are ``known``, or measured now."""
    values = {}
    for metric in METRICS:
        of_kind, key = found[metric.kind], metric.name.replace("-", "_")
        base, own = told(metric, of_kind[reference]), told(metric, of_kind[name])
        pairs = zip(of_kind[reference], of_kind[name], strict=True)
        changes = [change for pair in pairs if (change := metric.difference(*pair)) is not None]
        if changes and base is not None:
            values[key] = math.exp(median(changes)) * known.get(key, base)
        elif own is not None:
            values[key] = own
    return values


def told(metric: Metric, runs: Sequence[Run]) -> float | None:
    """The median of the launches that have a number."""
    found = [value for run in runs if (value := metric.of(run)) is not None]
    return median(found) if found else None


def error(row: Environment, cell: Cell, settings: Settings, *, scale: str) -> float | None:
    """The error, a fraction, after training from seed 0; None where labels mean nothing."""
    fields, _ = measure.inputs(cell.task)
    plan = measure.Plan(task=cell.task, phase="train", scale=scale, **fields)
    run = measure.side_by_side({row.name: row}, plan, replace(settings, seed=0))[row.name]
    store.save(run, RUNS)
    return None if run.accuracy is None else 1 - run.accuracy
