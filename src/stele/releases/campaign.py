"""Numbers for releases that have none: built, measured side by side, and on record cell by cell.

What was cut off goes on where it stopped, for what is on record is not measured again.
"""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from stele import environments
from stele.environments import Environment, builds
from stele.environments.installer import Unsolvable
from stele.errors import SteleError
from stele.gate.trial import Cell
from stele.measuring.measure import SideFailed
from stele.measuring.settings import Settings
from stele.releases import frameworks, history, ledger, measuring
from stele.releases.history import Place
from stele.releases.measuring import Outcome
from stele_worker import tasks

MODES = {"tuned": True, "as-shipped": False}


class Wanted(NamedTuple):
    """What of each release is to be measured, and how."""

    cells: tuple[Cell, ...]
    settings: Settings
    launches: int
    scale: str
    error: str | None  # the scale of the training that gives an error
    deadline: float  # time.monotonic()
    say: Callable[[str], object]


def measured(tags: Sequence[str], what: Wanted, *, again: bool = False) -> bool:
    """Whether all releases, of one framework, are known now."""
    place, ready = history.here(), []
    for tag in tags:
        if not again and whole(tag, place, what):
            continue
        if time.monotonic() > what.deadline:
            return False
        row = built(tag, place, what)
        ready += [row] if row is not None else []
    for cell in what.cells:
        for mode in MODES:
            if not filled(ready, cell, mode, what, place, again=again):
                return False
    return errors(ready, what, place)


def whole(tag: str, place: Place, what: Wanted) -> bool:
    """Whether a release has a number for each cell that it can have, or is known to fail in it, or in all."""
    known = history.record(tag, place)
    if known is None:
        return False
    row = frameworks.row(frameworks.of_tag(tag))
    there = [cell for cell in what.cells if absence(row, cell, what.settings) is None]
    errors = {f"{cell.task} train tuned" for cell in there if what.error and cell.phase == "train"}
    told = {f"{cell} tuned" for cell in there} <= set(known["step"]) and errors <= set(known["error"])
    return told or all(value is None for cells in known.values() for value in cells.values())


def absence(row: Environment, cell: Cell, settings: Settings) -> str | None:
    return row.why_absent(*cell, device=settings.device, precision=settings.precision)


def built(tag: str, place: Place, what: Wanted) -> Environment | None:
    """The release's environment, built; None where it cannot be, and on record where it never will."""
    row = frameworks.environment(tag, ledger.content(tag))
    try:
        if environments.state(row).status != "ready":
            what.say(f"building {tag} …")
            builds.make(row)
    except (builds.DoesNotImport, Unsolvable) as error:
        what.say(f"{tag} cannot be measured: {error}")
        history.save(tag, place, {}, complaint=str(error))
        return None
    except SteleError as error:
        what.say(f"{tag} cannot be measured now: {error}")
        return None
    return row


def filled(
    rows: Sequence[Environment], cell: Cell, mode: str, what: Wanted, place: Place, *, again: bool
) -> bool:
    """Measure one cell of these releases, and write the numbers down. False where the time is up."""
    having = [variant(row, mode) for row in rows if has(row, cell, mode, what.settings)]
    missing = [
        row for row in having if again or f"{cell} {mode}" not in history.recorded(row.name, place, "step")
    ]
    for group in measuring.groups(missing):
        if time.monotonic() > what.deadline:
            return False
        known = anchor([row.name for row in group], cell, mode, place)
        found = measuring.compared(
            group, known, cell, what.settings, scale=what.scale, launches=what.launches, say=what.say
        )
        for tag, outcome in found.items():
            if known is None or tag != known[0].name:
                note(tag, place, cell, mode, outcome, what)
    return True


def has(row: Environment, cell: Cell, mode: str, settings: Settings) -> bool:
    """Whether a release has this cell; as shipped only where that differs."""
    return absence(row, cell, settings) is None and (MODES[mode] or row.as_shipped is not None)


def variant(row: Environment, mode: str) -> Environment:
    return replace(row, tuned=MODES[mode])


def anchor(
    tags: Sequence[str], cell: Cell, mode: str, place: Place
) -> tuple[Environment, dict[str, float]] | None:
    """The oldest release of this framework whose numbers of the cell are on record, and those."""
    for tag in ledger.tags(frameworks.of_tag(tags[0])):
        found, where = history.numbers(tag, place) or {}, f"{cell} {mode}"
        known = {metric: cells[where] for metric, cells in found.items() if where in cells}
        if tag not in tags and "step" in known:
            row = frameworks.environment(tag, ledger.content(tag))
            with contextlib.suppress(SteleError):  # it can be had no more: the next oldest
                builds.make(row)
                return variant(row, mode), known
    return None


def note(tag: str, place: Place, cell: Cell, mode: str, outcome: Outcome, what: Wanted) -> None:
    found: Mapping[str, float | None] = outcome.numbers
    if outcome.complaint is not None:
        what.say(f"{tag}, {cell}: {outcome.complaint}")
        found = {"step": None, "error": None}  # nor is it trained for its error
    history.save(tag, place, {metric: {f"{cell} {mode}": value} for metric, value in found.items()})


def errors(rows: Sequence[Environment], what: Wanted, place: Place) -> bool:
    """Train each release once for its error, where that is asked for."""
    if what.error is None:
        return True
    for row in rows:
        for cell in what.cells:
            known = history.recorded(row.name, place, "error")
            if cell.phase != "train" or not has(row, cell, "tuned", what.settings):
                continue
            if f"{cell} tuned" in known or tasks.make(cell.task, "paper").data is None:
                continue
            if time.monotonic() > what.deadline:
                return False
            what.say(f"error of {row.name}, {cell.task}")
            try:
                value = measuring.error(row, cell, what.settings, scale=what.error)
            except SideFailed as failure:
                what.say(f"{row.name}, {cell}: {failure}")
                value = None
            history.save(row.name, place, {"error": {f"{cell} tuned": value}})
    return True
