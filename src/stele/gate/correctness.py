"""Whether NEW computes what OLD computes: launches for the parity ladder and for the accuracy from several seeds."""

import functools
from collections.abc import Container, Sequence
from dataclasses import replace

import msgspec

from stele.gate import durations, model_parity
from stele.gate.correctness_verdicts import (
    FAILED_LAUNCHES,
    SEEDS,
    equal_steps,
    ladder_verdict,
    trainings_verdict,
)
from stele.gate.entries import Verdict
from stele.gate.gate import Gate
from stele.gate.launcher import Launcher, lanes_of_parity, plan_of
from stele.gate.record import Entry
from stele.gate.state import UNKNOWN
from stele.gate.trial import Trial
from stele.measuring import progress
from stele.measuring.conditions import Monitor
from stele.measuring.content import NOTHING
from stele.measuring.together import together
from stele.parity import devices, examination
from stele.parity.ladder import Finding
from stele.subjects import Cell
from stele.subjects.base import OLD

ARMS = ("old", "new")
TRAINING_ATTEMPTS = 3  # NEW then fails in six launches, and OLD succeeds in three of its own


def missing(trial: Trial) -> list[Verdict]:
    """Return MISSING for each cell that OLD has and NEW does not have."""
    absences = {cell: trial.absences(cell) for cell in trial.cells}
    return [
        Verdict(*cell, "all", "MISSING", f"NEW does not have it: {new}")
        for cell, (old, new) in absences.items()
        if new is not None and old is None
    ]


def parity(gate: Gate) -> list[Verdict]:
    """Return a verdict for each task: BROKEN if NEW differs from the golden numbers at a lower rung than OLD.

    If OLD is the reference of the subject, there is one verdict on all of it.
    """
    if gate.trial.subject.reference == OLD:
        return [model_parity.verdict(gate)]
    verdicts = []
    for task in dict.fromkeys(cell.task for cell in gate.trial.common_cells()):
        climb_together(gate, task)
        new = parity_entry(gate, task, "new")
        old = parity_entry(gate, task, "old", until_failure=new.get("failure") is not None)
        verdicts.append(ladder_verdict(task, old["findings"], new["findings"]))
    return verdicts


def parity_entry(gate: Gate, task: str, arm: str, *, until_failure: bool = False) -> Entry:
    """Return the entry of an arm: its findings, and why its worker failed.

    It is launched up to FAILED_LAUNCHES times until its worker does not fail. ``until_failure`` launches it until its
    worker fails, to see whether it ever does.
    """
    trial, cell = gate.trial, Cell(task, "all")

    def launch() -> Entry:
        durations.announce(gate, "parity", f"{task}, {arm.upper()}", cell, "parity")
        monitor, findings, failure = Monitor(trial.settings), list[Finding](), None
        for _ in range(FAILED_LAUNCHES):
            findings, failure = climb(trial, task, arm)
            if (failure is not None) == until_failure:
                break
        took = monitor.conditions().seconds
        durations.remember(trial, cell, "parity", took)
        return {
            "findings": findings,
            "failure": failure,
            "took": took,
        }

    return gate.record.get_or_launch("parity", task, arm, launch=launch)


def climb_together(gate: Gate, task: str) -> None:
    """Climb the ladder in both arms at the same time, if there are processors and memory for it.

    If a worker fails beside the other one, this counts for nothing: it is repeated alone.
    """
    trial, record, cell = gate.trial, gate.record, Cell(task, "all")
    lanes = lanes_of_parity(trial, len(ARMS))
    if not lanes or trial.settings.devices > 1 or any(record.get("parity", task, arm) for arm in ARMS):
        return
    durations.announce(gate, "parity", f"{task}, OLD and NEW", cell, "parity of both")
    record.check(NOTHING)
    monitor = Monitor(trial.settings)
    climbed = together(
        [(functools.partial(climb, trial, task, arm), lane) for arm, lane in zip(ARMS, lanes, strict=True)]
    )
    seconds = monitor.conditions().seconds
    if all(failure is None for _, failure in climbed):
        durations.remember(trial, cell, "parity of both", seconds)
        for arm, (findings, failure) in zip(ARMS, climbed, strict=True):
            entry = {"findings": findings, "failure": failure, "took": seconds / len(ARMS)}
            record.add({("parity", task, arm): entry})


def climb(trial: Trial, task: str, arm: str) -> tuple[list[Finding], str | None]:
    """Return the findings of one device, and of several devices if the trial uses them; and why a worker failed."""
    environment, settings = trial.arm(arm), trial.settings
    findings, _, _, failure = examination.run_ladder(
        environment, task, replace(settings, devices=1), timeout=trial.timeout
    )
    if settings.devices > 1 and failure is None:
        of_several = devices.run_ladder(environment, task, settings, timeout=trial.timeout)
        return findings + of_several.findings, of_several.failure
    return findings, failure


def accuracy(gate: Gate, cells: Sequence[Cell], agreeing: Container[str]) -> list[Verdict]:
    """Return a verdict on NEW's accuracy for each task that is trained on real labels.

    In the ``agreeing`` tasks, parity agrees.
    """
    trained = [cell for cell in cells if cell.phase == "train" and gate.trial.subject.has_accuracy(cell.task)]
    return [accuracy_in(gate, cell, agrees=cell.task in agreeing) for cell in trained]


def accuracy_in(gate: Gate, cell: Cell, *, agrees: bool) -> Verdict:
    """Train both arms from one seed after the other, until their accuracies are judged.

    If parity agrees and the timed launches begin the same training, that is enough: see ``equal_steps``.
    """
    if agrees and (same := equal_steps(cell, gate.record.entries())):
        return same
    durations.announce(gate, "accuracy", f"{cell.task}, for each seed", cell, "accuracy")
    entries = list[Entry]()
    verdict, is_decided = trainings_verdict(cell, entries)
    for seed in range(SEEDS[-1]):
        if is_decided or (gate.is_spent and gate.record.get("accuracy", cell.task, seed) is None):
            break
        entries.append(train_arms(gate, cell, seed))
        verdict, is_decided = trainings_verdict(cell, entries)
    if is_decided or verdict.status != "INCONCLUSIVE":
        return verdict
    took = [float(entry["took"]) for entry in entries]
    seconds = sum(took) / len(took) if took else durations.estimate(gate.trial, cell, "accuracy")
    more = next(count for count in SEEDS if count > len(entries)) - len(entries)
    return msgspec.structs.replace(verdict, needs=more * (UNKNOWN if seconds is None else seconds))


def train_arms(gate: Gate, cell: Cell, seed: int) -> Entry:
    """Return the entry of a training of both arms from a seed: from the record, or after launches."""
    trial = gate.trial

    def launch() -> Entry:
        progress.part("accuracy", f"{cell.task}, seed {seed}", runs=True)
        settings = replace(trial.settings, seed=seed)
        plan = plan_of(cell, trial.training, trial.subject)
        launcher = Launcher(trial, (plan,), settings, timed=False, attempts=TRAINING_ATTEMPTS, left=gate.left)
        [[entry]] = launcher.launch([ARMS])
        assert entry is not None  # a plan that failed has one
        durations.remember(trial, cell, "accuracy", entry["took"])
        return entry

    return gate.record.get_or_launch("accuracy", cell.task, seed, launch=launch)
