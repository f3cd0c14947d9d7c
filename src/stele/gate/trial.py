"""A trial: what is compared with what, and how; and one launch of it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from stele.environments import Environment
from stele.errors import SteleError
from stele.gate.conditions import Watch
from stele.gate.metrics import Metric
from stele.gate.record import Entry, Record
from stele.measuring import machine, measure
from stele.measuring.measure import SideFailed, side_by_side
from stele.measuring.run import Run
from stele.measuring.settings import Settings

ATTEMPTS = 2  # at a launch: what fails once may be chance, twice it is broken
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
    scale: str = "gate"  # of what is timed
    training: str = "quick"  # the scale of what is trained for its accuracy
    timeout: float = TIMEOUT

    def arm(self, name: str) -> Environment:
        """The environment of "old", "new", or "control", which is OLD's."""
        return self.new if name == "new" else self.old

    def over(self, record: Record, share: float = 1.0) -> bool:
        """Whether a share of the budget has been spent."""
        return record.spent >= share * self.budget

    def absences(self, cell: Cell) -> tuple[str | None, str | None]:
        """Why OLD, and why NEW, has no such cell."""
        where = {"device": self.settings.device, "precision": self.settings.precision}
        return self.old.why_absent(*cell, **where), self.new.why_absent(*cell, **where)

    def present(self) -> list[Cell]:
        """The cells that both have."""
        return [cell for cell in self.cells if self.absences(cell) == (None, None)]


def launched(
    trial: Trial, cell: Cell, arms: Sequence[str], settings: Settings, scale: str, *, timed: bool = True
) -> Entry:
    """A fresh process for each arm, measured in this order; where one fails, all are tried once more."""
    watch, runs = Watch(settings), None
    failures: dict[str, list[str]] = {arm: [] for arm in arms}
    while runs is None and max(map(len, failures.values())) < ATTEMPTS:
        try:
            runs = measured(trial, cell, arms, settings, scale, timed=timed)
        except SideFailed as error:
            failures[error.side].append(str(error))
    if runs is None and len(arms) > 1:  # whose fault it is: does each work alone?
        for arm in arms:
            if not failures[arm]:
                alone = launched(trial, cell, [arm], settings, scale, timed=timed)
                failures[arm] = alone["failures"][arm]
    conditions = watch.conditions()
    return {
        "runs": None if runs is None else {arm: run.to_dict() for arm, run in runs.items()},
        "failures": failures,
        "conditions": conditions._asdict(),
        "took": conditions.seconds,
    }


def measured(
    trial: Trial, cell: Cell, arms: Sequence[str], settings: Settings, scale: str, *, timed: bool
) -> dict[str, Run]:
    fields, _ = measure.inputs(cell.task)
    plan = measure.Plan(task=cell.task, phase=cell.phase, scale=scale, **fields)
    sides = {arm: trial.arm(arm) for arm in arms}
    return side_by_side(sides, plan, settings, timeout=trial.timeout, timed=timed)


def failed(entry: Entry) -> dict[str, str]:
    """Of a launch without Runs, why each arm that failed did."""
    return {} if entry["runs"] is not None else last(entry)


def last(entry: Entry) -> dict[str, str]:
    """The last failure of each arm that failed at all."""
    return {arm: said[-1] for arm, said in entry["failures"].items() if said}


def header(trial: Trial) -> dict[str, Any]:
    """What a record begins with: all that a trial that goes on must have in common with it."""
    return {
        "old": trial.old.name,
        "new": trial.new.name,
        "cells": [list(cell) for cell in trial.cells],
        "metrics": {metric.name: metric.margin for metric in trial.metrics},
        "parity": trial.parity,
        "accuracy": trial.accuracy,
        "settings": asdict(trial.settings),
        "scales": [trial.scale, trial.training],
        "seed": trial.seed,
        "machine": machine.facts(),
    }


def refuse_another(record: Record, trial: Trial) -> None:
    """Raises SteleError, naming the fact, if the record is of another trial or another machine."""
    facts = header(trial)
    asked = {name: value for name, value in facts.items() if name != "machine"}
    here, there = machine.fingerprint(facts["machine"]), machine.fingerprint(record.header["machine"])
    pairs = [(name, record.header.get(name), value) for name, value in asked.items()]
    pairs += [(fact, there[fact], value) for fact, value in here.items()]
    for fact, then, now in pairs:
        if then != now:
            said = f"{record.path} cannot be gone on with: its {fact} is {then!r}, now it is {now!r}."
            raise SteleError(f"{said} Begin anew, without --resume, or ask for the same.")
