"""A trial: what is compared, and how; and the launches of its arms."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from stele.environments import Environment
from stele.environments.packages import Difference
from stele.errors import SteleError
from stele.gate.conditions import Monitor
from stele.gate.metrics import Metric
from stele.gate.record import Entry, Record
from stele.measuring import machine, measure
from stele.measuring.measure import SideFailed, side_by_side
from stele.measuring.run import Run
from stele.measuring.settings import Settings
from stele.models.spec import Model

ATTEMPTS = 2  # for each launch: one failure may be chance, two are a fault
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
    training: str = "quick"  # the scale of the trainings that are judged by their accuracy
    timeout: float = TIMEOUT
    model: Model | None = None  # a model of the user in place of the built-in tasks
    differences: tuple[Difference, ...] = ()  # other packages that differ between the arms
    typed: tuple[str, ...] = ()  # what named the arms on the command line, if not their names

    def arm(self, name: str) -> Environment:
        """Return the environment of the arm "old", "new" or "control". The control's is OLD's."""
        return self.new if name == "new" else self.old

    def budget_spent(self, record: Record, share: float = 1.0) -> bool:
        """Return whether a share of the budget has been spent."""
        return record.spent >= share * self.budget

    def absences(self, cell: Cell) -> tuple[str | None, str | None]:
        """Return why OLD, and why NEW, does not have a cell; None for one that has it."""
        where = {"device": self.settings.device, "precision": self.settings.precision}
        return self.old.why_absent(*cell, **where), self.new.why_absent(*cell, **where)

    def common_cells(self) -> list[Cell]:
        """Return the cells that both OLD and NEW have."""
        return [cell for cell in self.cells if self.absences(cell) == (None, None)]


def launch_arms(
    trial: Trial, cell: Cell, arms: Sequence[str], settings: Settings, scale: str, *, timed: bool = True
) -> Entry:
    """Measure a fresh process for each arm, in this order, and return the entry for the record.

    If one fails, all are launched once more.
    """
    monitor, runs = Monitor(settings), None
    failures: dict[str, list[str]] = {arm: [] for arm in arms}
    while runs is None and max(map(len, failures.values())) < ATTEMPTS:
        try:
            runs = measure_arms(trial, cell, arms, settings, scale, timed=timed)
        except SideFailed as error:
            failures[error.side].append(str(error))
    if runs is None and len(arms) > 1:  # launch the other arms alone: they may fail as well
        for arm in arms:
            if not failures[arm]:
                alone = launch_arms(trial, cell, [arm], settings, scale, timed=timed)
                failures[arm] = alone["failures"][arm]
    conditions = monitor.conditions()
    return {
        "runs": None if runs is None else {arm: run.to_dict() for arm, run in runs.items()},
        "failures": failures,
        "conditions": conditions._asdict(),
        "took": conditions.seconds,
    }


def measure_arms(
    trial: Trial, cell: Cell, arms: Sequence[str], settings: Settings, scale: str, *, timed: bool
) -> dict[str, Run]:
    plan = plan_of(cell, scale, trial.model)
    sides = {arm: trial.arm(arm) for arm in arms}
    return side_by_side(sides, plan, settings, timeout=trial.timeout, timed=timed)


def plan_of(cell: Cell, scale: str, model: Model | None) -> measure.Plan:
    """Return the plan of a cell of a task, or of a user's model."""
    if model is not None:
        return measure.model_plan(cell.task, cell.phase, scale, model.as_request())
    fields, _ = measure.inputs(cell.task)
    return measure.Plan(task=cell.task, phase=cell.phase, scale=scale, **fields)


def failure_messages(entry: Entry) -> dict[str, str]:
    """Return why each arm failed, for a launch without Runs; else nothing."""
    return {} if entry["runs"] is not None else last_failures(entry)


def last_failures(entry: Entry) -> dict[str, str]:
    """Return the last failure of each arm that failed at least once."""
    return {arm: messages[-1] for arm, messages in entry["failures"].items() if messages}


def header(trial: Trial) -> dict[str, Any]:
    """Return the header of a trial's record: everything that a resumed trial must share with it."""
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
        **({} if trial.model is None else {"model": trial.model.as_request()}),
    }


def check_record(record: Record, trial: Trial) -> None:
    """Raise SteleError, which names the fact, if the record belongs to a different trial or machine."""
    facts = header(trial)
    options = {name: value for name, value in facts.items() if name != "machine"}
    here, there = machine.fingerprint(facts["machine"]), machine.fingerprint(record.header["machine"])
    pairs = [(name, record.header.get(name), value) for name, value in options.items()]
    pairs += [(fact, there[fact], value) for fact, value in here.items()]
    for fact, then, now in pairs:
        if then != now:
            raise SteleError(
                f"Cannot resume {record.path}: its {fact} was {then!r} and is now {now!r}. "
                "Run without --resume, or with the recorded value."
            )
