"""A trial: what is compared, and how. ``launcher`` launches its arms."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from stele.environments import Environment
from stele.environments.packages import Difference
from stele.errors import SteleError
from stele.gate.metrics import Metric
from stele.gate.record import Record
from stele.measuring import content, machine, measure
from stele.measuring.content import Content, Reads
from stele.measuring.settings import Settings
from stele.measuring.variables import asked_for
from stele.models import arms
from stele.models.comparison import Comparison
from stele.models.spec import Model
from stele.text import without_passwords
from stele_worker import tasks

ARMS = ("old", "control", "new", "repeat")  # each release twice: launches of one release show the noise
NEW_ARMS = ("new", "repeat")
AT_ONCE = 2  # passes: more would compete for the memory that all cores share
TIMEOUT = 180.0  # seconds without a sign of life


class Cell(NamedTuple):
    task: str
    phase: str

    def __str__(self) -> str:
        return f"{self.task} {self.phase}"


@dataclass(frozen=True)
class Trial:
    """What is compared, and how. ``budget`` is in seconds; ``seed`` draws the orders."""

    old: Environment
    new: Environment
    cells: tuple[Cell, ...]
    metrics: tuple[Metric, ...]
    settings: Settings
    seed: int
    budget: float
    parity: bool = True
    accuracy: bool = True
    scale: str = "gate"  # of the timed launches
    training: str = (
        "quick"  # the scale of the trainings that are judged by their accuracy, or their time to a target
    )
    target: float | None = None  # accuracy of the trainings that are timed; None for that of each task
    timeout: float = TIMEOUT
    model: Model | None = None  # a model of the user in place of the built-in tasks
    compared: Comparison = field(default_factory=Comparison)  # what both arms said about the model
    differences: tuple[Difference, ...] = ()  # other packages that differ between the arms
    named: tuple[Difference, ...] = ()  # the packages that OLD and NEW name
    typed: tuple[
        str, ...
    ] = ()  # the words of the command, after "stele"; empty if there is none that continues
    fail_fast: bool = False  # end at the first verdict against NEW
    at_once: int = 1  # passes that are measured at the same time, if there are enough cores and memory

    def arm(self, name: str) -> Environment:
        """Return the environment of one of ARMS."""
        return self.new if name in NEW_ARMS else self.old

    @property
    def parity_phase(self) -> str:
        """The phase whose parity is judged; "all" for both, and for the built-in tasks."""
        phases = {cell.phase for cell in self.cells}
        return phases.pop() if self.model is not None and len(phases) == 1 else "all"

    def target_of(self, task: str) -> float | None:
        """Return the accuracy that the timed trainings of a task must reach; None if nothing defines it."""
        return tasks.target(task, self.training) if self.target is None else self.target

    def budget_spent(self, record: Record, share: float = 1.0) -> bool:
        """Return whether a share of the budget has been spent."""
        return record.spent >= share * self.budget

    def absences(self, cell: Cell) -> tuple[str | None, str | None]:
        """Return why OLD, and why NEW, does not have a cell; None for one that has it."""
        names = ("device", "precision", "devices")
        where: dict[str, Any] = {name: getattr(self.settings, name) for name in names}
        return self.old.why_absent(*cell, **where), self.new.why_absent(*cell, **where)

    def common_cells(self) -> list[Cell]:
        """Return the cells that both OLD and NEW have."""
        return [cell for cell in self.cells if self.absences(cell) == (None, None)]


def files_of(trial: Trial) -> list[Path]:
    """Return the files that decide what a model does, as far as an inspection knows them."""
    return [] if trial.model is None else [*trial.model.sources(), *arms.config_files(trial.old)]


def header(trial: Trial) -> dict[str, Any]:
    """Return the header of a trial's record: what a resumed trial must share with it, and the command."""
    content.look_again()
    return {
        "old": trial.old.name,
        "new": trial.new.name,
        "cells": [list(cell) for cell in trial.cells],
        "metrics": {metric.name: metric.margin for metric in trial.metrics},
        "tolerances": {metric.name: metric.tolerance for metric in trial.metrics},
        "parity": trial.parity,
        "accuracy": trial.accuracy,
        "settings": trial.settings.as_fields(),
        "scales": [trial.scale, trial.training],
        "seed": trial.seed,
        "content": content_of(trial),
        "machine": machine.facts(),
        **({"command": [without_passwords(word) for word in trial.typed]} if trial.typed else {}),
        **({} if trial.model is None else {"model": trial.model.as_request()}),
        **({} if trial.target is None else {"target": trial.target}),
    }


def content_of(trial: Trial, known: Mapping[str, Mapping[str, str | None]] = {}) -> Content:
    """Return what decides what is measured, beside the options; ``stele.measuring.content`` describes it.

    It has also the files and variables of a content that is ``known``: launches may have read more than an inspection.
    """
    model, folder = trial.model, folder_of(trial)
    paths = [*files_of(trial), *(folder / name for name in known.get("files", {}))]
    variables = [*(() if model is None else model.reads.variables), *known.get("asked", {})]
    environments = {"old": trial.old, "new": trial.new}
    return content.merged(
        [
            {"code": content.of_code()},
            *(
                content.named(content.of_environment(arm, known=paths), name)
                for name, arm in environments.items()
            ),
            {"files": content.of_files(paths, folder)},
            {"asked": asked_for(variables)},
            {"data": {} if model is not None else data_of(cell.task for cell in trial.cells)},
        ]
    )


def folder_of(trial: Trial) -> Path:
    return Path.cwd() if trial.model is None else trial.model.folder


def data_of(tasks: Iterable[str]) -> dict[str, str | None]:
    """Return the origin and the fingerprint of the data of each task, and of its weights."""
    every = {task: measure.inputs(task)[0] for task in tasks}
    return {
        f"the data of {task}": " ".join(
            [*fields["data_origin"].values(), fields.get("weights_origin", "seeded")]
        )
        for task, fields in every.items()
    }


def check_record(record: Record, trial: Trial) -> None:
    """Raise SteleError, which names the fact, if the record belongs to a different trial or machine."""
    then, facts = dict(record.header), header(trial)
    before = then.pop("content", {})
    changed = content.changes(before, content_of(trial, before))
    if changed is not None:
        raise SteleError(
            f"Cannot resume {record.path}, because what it measured has changed: {changed}. Run without --resume."
        )
    here, there = machine.fingerprint(facts["machine"]), machine.fingerprint(record.header["machine"])
    options = {*then, *facts} - {"machine", "command", "content"}
    pairs = [(name, then.get(name), facts.get(name)) for name in [*facts, *then] if name in options]
    pairs += [(fact, there[fact], value) for fact, value in here.items()]
    for fact, value, now in pairs:
        if value != now:
            raise SteleError(
                f"Cannot resume {record.path}: its {fact} was {value!r} and is now {now!r}. "
                "Run without --resume, or with the recorded value."
            )


def check_unchanged(path: Path, then: Content, trial: Trial) -> None:
    """Raise SteleError, which names what changed, if a launch would measure something else than those before it."""
    try:
        changed = content.changes(then, content_of(trial, then))
    except SteleError as error:  # an interpreter is gone
        changed = str(error)
    if changed is not None:
        raise SteleError(
            f"What is measured changed during the measurement: {changed}. What was measured before is in {path}. "
            "Undo the change and continue with --resume, or run again without --resume."
        )


def watch(record: Record, trial: Trial) -> Record:
    """Return the record, which now refuses launches if what is measured changes, and keeps what launches read."""
    noticed = content.Noticed()

    def check(reads: Reads) -> Content:
        known = record.header["content"]
        check_unchanged(record.path, known, trial)
        files = (*reads.files, *noticed.admit(reads.noticed))
        return content.additions(known, reads._replace(files=files), folder_of(trial))

    record.check = check
    return record
