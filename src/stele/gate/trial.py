"""A trial: what is compared, and how. ``launcher`` launches its arms."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stele import schema
from stele.environments import Environment
from stele.environments.packages import Difference
from stele.errors import SteleError
from stele.gate.metrics import Metric
from stele.gate.record import Record
from stele.measuring import content, machine
from stele.measuring.content import Content, Reads
from stele.measuring.settings import Settings
from stele.measuring.variables import variable_hashes
from stele.subjects import Cell, Comparison, Subject, Tasks
from stele.text import or_none, without_passwords

ARMS = ("old", "control", "new", "repeat")  # each release twice: launches of one release show the noise
NEW_ARMS = ("new", "repeat")
PARALLEL = 2  # passes: more would compete for the memory that all cores share
TIMEOUT = 180.0  # seconds without a sign of life


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
    training: str = "quick"  # the scale of the trainings that are judged by their accuracy, or their time to a target
    target: float | None = None  # accuracy of the trainings that are timed; None for that of each task
    timeout: float = TIMEOUT
    subject: Subject = field(default_factory=Tasks)
    compared: Comparison = field(default_factory=Comparison)  # how the subject of NEW differs from that of OLD
    differences: tuple[Difference, ...] = ()  # other packages that differ between the arms
    named: tuple[Difference, ...] = ()  # the packages that OLD and NEW name
    typed: tuple[str, ...] = ()  # the words of the command, after "stele"; empty if there is none that continues
    fail_fast: bool = False  # end at the first verdict against NEW
    parallel: int = 1  # passes that are measured at the same time, if there are enough cores and memory

    def arm(self, name: str) -> Environment:
        return self.new if name in NEW_ARMS else self.old

    def target_of(self, task: str) -> float | None:
        """Return the accuracy that the timed trainings of a task must reach; None if nothing defines it."""
        return self.subject.target_accuracy(task, self.training) if self.target is None else self.target

    def absences(self, cell: Cell) -> tuple[str | None, str | None]:
        """Return why OLD, and why NEW, does not have a cell; None for one that has it."""
        old, new = (
            arm.why_absent(
                *cell,
                device=self.settings.device,
                precision=self.settings.precision,
                devices=self.settings.devices,
            )
            for arm in (self.old, self.new)
        )
        return old, new

    def common_cells(self) -> list[Cell]:
        """Return the cells that both OLD and NEW have."""
        return [cell for cell in self.cells if self.absences(cell) == (None, None)]


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
        "settings": schema.to_json(trial.settings),
        "scales": [trial.scale, trial.training],
        "seed": trial.seed,
        "content": content_of(trial),
        "machine": schema.to_json(machine.facts()),
        **({"command": [without_passwords(word) for word in trial.typed]} if trial.typed else {}),
        **trial.subject.facts(),
        **({} if trial.target is None else {"target": trial.target}),
    }


def content_of(trial: Trial, recorded: Mapping[str, Mapping[str, str | None]] = {}) -> Content:
    """Return what decides what is measured, beside the options; ``stele.measuring.content`` describes it.

    It has also the files and variables of a ``recorded`` content: launches may have read more than an inspection.
    """
    subject = trial.subject
    paths = [*subject.files(trial.old), *(subject.root / name for name in recorded.get("files", {}))]
    variables = [*subject.variables, *recorded.get("model_variables", {})]
    environments = {"old": trial.old, "new": trial.new}
    apart = subject.apart(trial.old)  # not what is recorded, which grows
    return content.merged(
        [
            {"code": content.of_code()},
            *(content.named(content.of_environment(arm, apart=apart), name) for name, arm in environments.items()),
            {"files": content.of_files(paths, subject.root)},
            {"model_variables": variable_hashes(variables)},
            {"data": subject.data(dict.fromkeys(cell.task for cell in trial.cells))},
        ]
    )


def check_record(record: Record, trial: Trial, different: Iterable[str] = ()) -> None:
    """Raise SteleError, which names the fact, if the record belongs to a different trial or machine.

    ``different`` are the options that differ in the command of the record, as text.
    """
    then, facts = dict(record.header), header(trial)
    before = then.pop("content", {})
    changed = content.changes(before, content_of(trial, before))
    if changed is not None:
        raise SteleError(
            f"Cannot resume {record.path}, because what it measured has changed: {changed}. Run without --resume."
        )
    here, there = (
        schema.to_json(machine.fingerprint(schema.convert(facts_of_header["machine"], machine.Machine)))
        for facts_of_header in (facts, record.header)
    )
    names = dict.fromkeys(name for name in (*facts, *then) if name not in ("machine", "command", "content"))
    changes = list(filter(None, (of_fact(name, then.get(name), facts.get(name)) for name in names)))
    if changes:
        options = " and ".join(different)
        reason = f"it was made {options}" if options else f"its {changes[0]}"
        raise SteleError(
            f"Cannot resume {record.path}: {reason}. Run without --resume, or with the options of the record."
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
        recorded = record.header["content"]
        check_unchanged(record.path, recorded, trial)
        files = (*reads.files, *noticed.admit(reads.noticed))
        return content.additions(recorded, reads._replace(files=files), trial.subject.root)

    record.check = check
    return record
