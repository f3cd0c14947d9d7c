"""A trial: what is compared, and how; and the launches of its arms."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import stele_worker
from stele.environments import Environment
from stele.environments.packages import Difference
from stele.errors import SteleError
from stele.gate.metrics import Metric
from stele.gate.record import Entry, Record
from stele.measuring import machine, measure
from stele.measuring.conditions import Monitor
from stele.measuring.measure import SideFailed, side_by_side
from stele.measuring.run import Run
from stele.measuring.settings import Settings
from stele.models.spec import Model

ARMS = ("old", "control", "new", "repeat")  # each release twice: launches of one release show the noise
NEW_ARMS = ("new", "repeat")
ATTEMPTS = 2  # of a pass; a failed attempt is followed by a launch of each arm alone
TIMEOUT = 180.0  # seconds without a sign of life
LEAST_TIMEOUT = 30.0  # seconds
PATIENCE = 5  # after an arm failed, the timeout in times that a launch took that succeeded


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
    fail_fast: bool = False  # end at the first verdict against NEW

    def arm(self, name: str) -> Environment:
        """Return the environment of one of ARMS."""
        return self.new if name in NEW_ARMS else self.old

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


class Launcher(NamedTuple):
    """Launches arms of a trial in one cell."""

    trial: Trial
    cell: Cell
    settings: Settings
    scale: str
    steps: int | None = None  # of each launch; None for all of the scale
    timed: bool = True
    attempts: int = ATTEMPTS

    def launch(self, arms: Sequence[str]) -> Entry:
        """Measure a fresh process for each arm, in this order, and return the entry for the record.

        If one fails, each arm is launched once alone, to see which ones fail, and then all are launched again. The
        entry has the failures of each of these rounds: see ``stele.gate.failures``.
        """
        monitor, runs = Monitor(self.settings), None
        rounds: list[dict[str, Any]] = []
        timeout = self.trial.timeout
        for _ in range(self.attempts):
            try:
                runs = measure_arms(self, arms, timeout)
                break
            except SideFailed as error:
                rounds.append({"arms": list(arms), "failures": {error.side: str(error)}})
            if len(arms) > 1:
                failures, timeout = self.launch_alone(arms, timeout)
                rounds.append({"arms": list(arms), "failures": failures})
        conditions = monitor.conditions()
        return {
            "runs": None if runs is None else {arm: run.to_dict() for arm, run in runs.items()},
            "rounds": rounds,
            "conditions": conditions._asdict(),
            "took": conditions.seconds,
        }

    def launch_alone(self, arms: Sequence[str], timeout: float) -> tuple[dict[str, str], float]:
        """Launch each arm alone. Return the failures, and the timeout of the next launches.

        A launch that succeeds shows how long one takes, so that a release that hangs does not take the budget.
        """
        failures = {}
        for arm in arms:
            monitor = Monitor(self.settings)
            try:
                measure_arms(self, [arm], timeout)
            except SideFailed as error:
                failures[arm] = str(error)
            else:
                timeout = min(timeout, max(PATIENCE * monitor.conditions().seconds, LEAST_TIMEOUT))
        return failures, timeout


def measure_arms(launcher: Launcher, arms: Sequence[str], timeout: float) -> dict[str, Run]:
    trial, plan = launcher.trial, plan_of(launcher.cell, launcher.scale, launcher.trial.model, launcher.steps)
    sides = {arm: trial.arm(arm) for arm in arms}
    return side_by_side(sides, plan, launcher.settings, timeout=timeout, timed=launcher.timed)


def plan_of(cell: Cell, scale: str, model: Model | None, steps: int | None = None) -> measure.Plan:
    """Return the plan of a cell of a task, or of a user's model."""
    if model is not None:
        return measure.model_plan(cell.task, cell.phase, scale, model.as_request(), steps=steps)
    fields, _ = measure.inputs(cell.task)
    return measure.Plan(task=cell.task, phase=cell.phase, scale=scale, steps=steps, **fields)


def failure_messages(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the last failure of each arm, for a launch without Runs; else nothing."""
    if entry["runs"] is not None:
        return {}
    return {arm: message for one in entry["rounds"] for arm, message in one["failures"].items()}


def code_fingerprint() -> str:
    """Return a hash of the worker's code: its recipes decide what is measured."""
    folder, digest = Path(stele_worker.__file__).parent, hashlib.sha256()
    for path in sorted(folder.rglob("*.*")):
        if "__pycache__" not in path.parts and path.is_file():
            digest.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def header(trial: Trial) -> dict[str, Any]:
    """Return the header of a trial's record: everything that a resumed trial must share with it."""
    return {
        "old": trial.old.name,
        "new": trial.new.name,
        "cells": [list(cell) for cell in trial.cells],
        "metrics": {metric.name: metric.margin for metric in trial.metrics},
        "tolerances": {metric.name: metric.tolerance for metric in trial.metrics},
        "parity": trial.parity,
        "accuracy": trial.accuracy,
        "settings": asdict(trial.settings),
        "scales": [trial.scale, trial.training],
        "seed": trial.seed,
        "code": code_fingerprint(),
        "machine": machine.facts(),
        **({} if trial.model is None else {"model": trial.model.as_request()}),
    }


def check_record(record: Record, trial: Trial) -> None:
    """Raise SteleError, which names the fact, if the record belongs to a different trial or machine."""
    facts = header(trial)
    if record.header.get("code") != facts["code"]:
        raise SteleError(
            f"Cannot resume {record.path}: a different version of Stele measured it, perhaps with different recipes. "
            "Run without --resume."
        )
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
