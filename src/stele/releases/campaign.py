"""Measure releases that have no numbers yet: build them, measure them side by side, and save cell by cell.

A run that was interrupted continues where it stopped, because saved numbers are not measured again, unless what decided
them has changed.
"""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from stele import environments, schema
from stele.environments import Environment, arms, builds, description
from stele.environments.arms import Extras
from stele.environments.installer import Unsolvable
from stele.errors import SteleError
from stele.measuring import content, progress
from stele.measuring.content import NOTHING, Content, Reads
from stele.measuring.measure import SideFailed
from stele.measuring.settings import Settings
from stele.measuring.variables import variable_hashes
from stele.measuring.worker import TIMEOUT
from stele.releases import frameworks, history, ledger, measuring
from stele.releases.history import Place
from stele.releases.measuring import CellNumbers
from stele.subjects import Cell, Subject, Tasks

TUNED, AS_SHIPPED = "tuned", "as-shipped"  # the first mode of an environment, and the one without its tuning
MODES = (TUNED, AS_SHIPPED)  # that are measured by default


class Request(NamedTuple):
    """What to measure of each release, and how."""

    cells: tuple[Cell, ...]
    settings: Settings
    launches: int
    scale: str
    error: str | None  # the scale of the training that measures the error; None: no training
    deadline: float  # time.monotonic()
    say: Callable[[str], object]
    subject: Subject = Tasks()
    extras: Extras = Extras()  # what every release gets for it
    modes: tuple[str, ...] = MODES


def measure_releases(tags: Sequence[str], request: Request, *, again: bool = False) -> bool:
    """Measure releases of one framework. Returns whether all are complete, False if the time ran out.

    With ``again``, releases and cells that have numbers are measured again.
    """
    place, ready = history.current_place(), []
    for tag in tags:
        if not again and is_complete(tag, place, request):
            continue
        if time.monotonic() > request.deadline:
            return False
        environment = build(tag, place, request)
        ready += [environment] if environment is not None else []
    if ready:
        resolved = request.subject.resolve(ready[-1], request.cells, timeout=TIMEOUT, say=request.say)
        request = request._replace(subject=resolved.subject)
    for cell in request.cells:
        for mode in request.modes:
            if not fill_cell(ready, cell, mode, request, place, again=again):
                return False
    return measure_errors(ready, request, place)


def is_complete(tag: str, place: Place, request: Request) -> bool:
    """Return whether a release has a number or a recorded failure for each cell, or failed altogether."""
    recorded = history.read_values(tag, place)
    if recorded is None:
        return False
    environment = frameworks.environment_of(frameworks.framework_of(tag))
    present = [
        (cell, mode)
        for cell in request.cells
        for mode in request.modes
        if has_cell(environment, cell, mode, request.settings)
    ]
    trained = {cell for cell, mode in present if request.error and cell.phase == "train" and mode == TUNED}
    steps, errors = {f"{cell} {mode}" for cell, mode in present}, {f"{cell} {TUNED}" for cell in trained}
    complete = steps <= valid_cells(tag, place, "step", request) and errors <= valid_cells(tag, place, "error", request)
    return complete or not any(recorded.values())  # the file of a release that was not built has no values


def valid_cells(tag: str, place: Place, metric: str, request: Request) -> set[str]:
    """Return the cells in which a release has a number, or a failure, and what decided it is as it is now.

    Of a release that is not built now, its packages are unknown: it has none.
    """
    contents = history.read_contents(tag, place)
    recorded = history.recorded_cells(tag, place, metric)
    return {
        key for key in recorded if changes(contents.get(content_key(key, metric)), tag, key, metric, request) is None
    }


def content_key(key: str, metric: str) -> str:
    """Return under which name the content of a number is saved: that of the error has another scale."""
    return f"{key} {metric}" if metric == "error" else key


def changes(then: Content | None, tag: str, key: str, metric: str, request: Request) -> str | None:
    """Return what has changed since a saved number of a cell, such as ``gru infer tuned``; None if nothing has."""
    cells = [cell for cell in request.cells if key.startswith(f"{cell} ")]
    release, mode = release_environment(tag, request), key.removeprefix(f"{cells[0]} ") if cells else ""
    if not cells or not has_cell(release, cells[0], mode, request.settings):
        return None
    if then is None:
        return "what decided it was not recorded"
    now = content_of(in_mode(release, mode), cells[0], metric, request, recorded=then)
    return content.changes(then, now)


def content_of(
    release: Environment, cell: Cell, metric: str, request: Request, *, recorded: Mapping[str, Any] = {}
) -> Content:
    """Return what decides the numbers of a cell. Of ``recorded``, the files and variables are compared, too.

    Stele's own packages are not compared except that of the worker: a number follows from ratios that are measured now.
    """
    subject, code = request.subject, content.of_code()
    scale = request.error if metric == "error" else request.scale
    options = {**schema.to_json(request.settings), "scale": scale}
    paths = [*subject.files(release), *(subject.root / name for name in recorded.get("files", {}))]
    return content.merged(
        [
            {"code": {name: code[name] for name in ("stele_suite", "stele_worker")}},
            {"options": {name: str(value) for name, value in options.items()}},
            {"options": {**subject.options(), "what is added": str(request.extras)}},
            {"data": subject.data([cell.task])},
            {"files": content.of_files(paths, subject.root)},
            {"model_variables": variable_hashes([*subject.variables, *recorded.get("model_variables", {})])},
            content.of_environment(release, apart=subject.apart(release)),
        ]
    )


class Watched:
    """What decides the numbers of releases in a cell: taken before the first launch, and compared after each."""

    def __init__(self, releases: Sequence[Environment], cell: Cell, metric: str, request: Request) -> None:
        self.releases, self.about, self.noticed = releases, (cell, metric, request), content.Noticed()
        self.contents = {release.name: content_of(release, *self.about) for release in releases}

    def check(self, reads: Reads = NOTHING) -> None:
        """Add what launches have read. Raises SteleError, which names what changed."""
        subject = self.about[-1].subject
        reads = reads._replace(files=(*reads.files, *self.noticed.admit(reads.noticed)))
        for release in self.releases:
            recorded = self.contents[release.name]
            changed = content.changes(recorded, content_of(release, *self.about, recorded=recorded))
            if changed is not None:
                raise SteleError(
                    f"What is measured changed during the measurement: {changed}. No number of {self.about[0]} was "
                    "saved. Run the command again."
                )
            more = content.additions(recorded, reads, subject.root)
            self.contents[release.name] = content.merged([recorded, more])


def why_absent(environment: Environment, cell: Cell, settings: Settings) -> str | None:
    """Return why an environment lacks a cell, or None if it has the cell."""
    return environment.why_absent(*cell, device=settings.device, precision=settings.precision)


def build(tag: str, place: Place, request: Request) -> Environment | None:
    """Build and return a release's environment; None if that fails. A permanent failure is saved."""
    environment = release_environment(tag, request)
    try:
        if environments.state(environment).status != "ready":
            request.say(f"building {tag} …")
            with progress.waiting(f"building {tag}"):
                builds.make(environment)
    except (builds.ImportFailed, Unsolvable) as error:
        request.say(f"{tag} cannot be measured: {error}")
        history.save(tag, place, {}, failure=str(error))
        return None
    except SteleError as error:
        request.say(f"{tag} cannot be measured now: {error}")
        return None
    return environment


def release_environment(tag: str, request: Request) -> Environment:
    """Return a release's environment, with what the user's model needs."""
    environment = frameworks.release_environment(tag, ledger.content(tag))
    return arms.with_needs(environment, request.subject.needs, request.extras)


def fill_cell(
    releases: Sequence[Environment], cell: Cell, mode: str, request: Request, place: Place, *, again: bool
) -> bool:
    """Measure one cell of these releases, and save the numbers. Returns False if the time ran out."""
    variants = [in_mode(release, mode) for release in releases if has_cell(release, cell, mode, request.settings)]
    missing = [
        release
        for release in variants
        if again or f"{cell} {mode}" not in valid_cells(release.name, place, "step", request)
    ]
    for release in missing:
        key, saved = f"{cell} {mode}", history.read_contents(release.name, place)
        is_new = key not in history.recorded_cells(release.name, place, "step")
        if not is_new and (changed := changes(saved.get(key), release.name, key, "step", request)):
            request.say(f"{release.name}, {cell}: measured again, because {changed}")
    for group in measuring.groups(missing):
        if time.monotonic() > request.deadline:
            return False
        reference = anchor([release.name for release in group], cell, mode, place, request)
        watched = Watched(group, cell, "step", request)
        outcomes = measuring.compare(
            group,
            reference,
            cell,
            request.settings,
            scale=request.scale,
            launches=request.launches,
            say=request.say,
            subject=request.subject,
            check=watched.check,
        )
        watched.check()
        for tag, outcome in outcomes.items():
            if reference is None or tag != reference[0].name:
                save_outcome(tag, place, cell, mode, outcome, request, watched.contents[tag])
    return True


def has_cell(environment: Environment, cell: Cell, mode: str, settings: Settings) -> bool:
    """Return whether a release has this mode, and this cell in it."""
    has_mode = mode == TUNED or mode in other_modes(environment)
    return has_mode and why_absent(in_mode(environment, mode), cell, settings) is None


def other_modes(environment: Environment) -> list[str]:
    """Return the modes of an environment without its first, which is called TUNED here."""
    return list(environment.modes)[1:]


def track(modes: Sequence[str]) -> None:
    """Have asv track the modes that are not measured by default."""
    for mode in modes:
        if mode not in MODES:
            history.register(history.MODES, mode)


def in_mode(environment: Environment, mode: str) -> Environment:
    """Return the environment in one of its modes, under its own name."""
    if mode == TUNED:
        return environment
    return replace(description.in_mode(environment, mode), name=environment.name)


def anchor(
    tags: Sequence[str], cell: Cell, mode: str, place: Place, request: Request
) -> tuple[Environment, dict[str, float]] | None:
    """Return the oldest release of this framework with valid numbers of the cell, and these numbers by metric.

    Skips ``tags`` and releases that cannot be built any more. Returns None if there is none.
    """
    for tag in ledger.tags(frameworks.framework_of(tags[0])):
        saved, key = history.numbers(tag, place) or {}, f"{cell} {mode}"
        values = {metric: cells[key] for metric, cells in saved.items() if key in cells}
        if tag in tags or "step" not in values or not may_be_valid(tag, place, key, request):
            continue
        environment = release_environment(tag, request)
        with contextlib.suppress(SteleError):  # not available any more: try the next oldest
            builds.make(environment)
            if key in valid_cells(tag, place, "step", request):
                return in_mode(environment, mode), values
    return None


def may_be_valid(tag: str, place: Place, key: str, request: Request) -> bool:
    """Return whether a number can be valid once its release is built: all but the packages is as it is now."""
    then = history.read_contents(tag, place).get(key)
    if then is None:
        return False
    cell = next(cell for cell in request.cells if key.startswith(f"{cell} "))
    release = in_mode(release_environment(tag, request), key.removeprefix(f"{cell} "))
    now = content_of(release, cell, "step", request, recorded=then)
    of_build = {group: then.get(group, {}) for group in (*content.OF_PACKAGES, "variables")}
    return content.changes(then, {**now, **of_build}) is None


def save_outcome(
    tag: str, place: Place, cell: Cell, mode: str, outcome: CellNumbers, request: Request, content_of_release: Content
) -> None:
    """Save the numbers of a release's cell, or its failure, with what decided them."""
    values: Mapping[str, float | None] = outcome.numbers
    if outcome.failure is not None:
        request.say(f"{tag}, {cell}: {outcome.failure}")
        values = {"step": None, "error": None}  # a failed cell is not trained for its error either
    key = f"{cell} {mode}"
    of_error = {**content_of_release, "options": {**content_of_release["options"], "scale": str(request.error)}}
    history.save(
        tag,
        place,
        {metric: {key: value} for metric, value in values.items()},
        ranges={metric: {key: pair} for metric, pair in outcome.intervals.items()},
        contents={key: content_of_release, **({content_key(key, "error"): of_error} if "error" in values else {})},
    )


def measure_errors(releases: Sequence[Environment], request: Request, place: Place) -> bool:
    """Train each release once for its error, if the request includes it. Returns False if the time ran out."""
    if request.error is None or TUNED not in request.modes:
        return True
    for release in releases:
        for cell in request.cells:
            recorded = valid_cells(release.name, place, "error", request)
            if cell.phase != "train" or not has_cell(release, cell, TUNED, request.settings):
                continue
            if f"{cell} {TUNED}" in recorded or not request.subject.has_accuracy(cell.task):
                continue
            if time.monotonic() > request.deadline:
                return False
            request.say(f"training {release.name}, {cell.task}, for its error")
            watched, key = Watched([release], cell, "error", request), f"{cell} {TUNED}"
            try:
                value = measuring.measure_error(
                    release, cell, request.settings, scale=request.error, subject=request.subject
                )
            except SideFailed as failure:
                request.say(f"{release.name}, {cell}: {failure}")
                value = None
            watched.check()
            contents = {content_key(key, "error"): watched.contents[release.name]}
            history.save(release.name, place, {"error": {key: value}}, contents=contents)
    return True
