"""A trial: what is compared, and how. ``launcher`` launches its arms."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from stele.text import or_none, without_passwords
from stele_worker import tasks

ARMS = ("old", "control", "new", "repeat")  # each release twice: launches of one release show the noise
NEW_ARMS = ("new", "repeat")
AT_ONCE = 2  # passes: more would compete for the memory that all cores share
# options that may differ in a command that resumes; most of these have no value, and the others have no meaning for it
FREE = (
    "--budget",
    "--fail-fast",
    "--at-once",
    "--worker-timeout",
    "--json",
    "--markdown",
    "--junit",
    "--explain",
    "--no-wait",
    "--resume",
    "--allow-vcs",
    "--changed",
)
REPEATED = ("--with", "--extra", "--tolerance", "--margin")  # of others, the last one counts
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
    names = dict.fromkeys(name for name in (*facts, *then) if name not in ("machine", "command", "content"))
    changes = list(filter(None, (of_fact(name, then.get(name), facts.get(name)) for name in names)))
    if changes:
        options = list(changed_options(record.header.get("command"), trial.typed))
        said = f"it was made {' and '.join(options)}" if options else f"its {changes[0]}"
        raise SteleError(
            f"Cannot resume {record.path}: {said}. Run without --resume, or with the options of the record."
        )
    changes = list(filter(None, (of_fact(fact, there[fact], value) for fact, value in here.items())))
    if changes:
        raise SteleError(
            f"Cannot resume {record.path}, because the machine is another one: its {changes[0]}. Run without --resume."
        )


def of_fact(name: str, then: Any, now: Any) -> str:
    """Return ``target was 0.5 and is now none``, with the name of each part that differs; empty if nothing does."""
    if then == now:
        return ""
    if isinstance(then, dict) and isinstance(now, dict):
        parts = (of_fact(f"{name} {part}", then.get(part), now.get(part)) for part in {**then, **now})
        return ", ".join(filter(None, parts)) or f"{name} changed"
    return f"{name} was {shown(then)} and is now {shown(now)}"


def shown(value: Any) -> str:
    """Return a fact of a header as text: lists without brackets."""
    return " ".join(map(shown, value)) if isinstance(value, (list, tuple)) else or_none(value)


def changed_options(then: Any, now: Sequence[str]) -> Iterator[str]:
    """Yield ``without --metric; now --metric parity`` for each option that two commands do not share.

    Nothing if the first command is unknown.
    """
    if not isinstance(then, list) or not now:
        return
    before, after = options_in(map(str, then)), options_in(map(without_passwords, now))
    for name in {**before, **after}:
        if before.get(name) != after.get(name):
            made = f"with {before[name]}" if name in before else f"without {name}"
            yield f"{made}; now {after.get(name, f'without {name}')}"


def options_in(words: Iterable[str]) -> dict[str, str]:
    """Return the options of a command that a resumed one must share, by name, as they were typed."""
    found: dict[str, list[str]] = {}
    last = None
    for word in words:
        if word.startswith("--"):
            last, _, value = word.partition("=")
            found.setdefault(last, []).extend([value] if value else [])
        elif last is not None:
            found[last].append(word)
            last = None
    counted = {name: values if name in REPEATED else values[-1:] for name, values in found.items()}
    return {name: shlex.join([name, *values]) for name, values in counted.items() if name not in FREE}


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
