"""What a gate judges, in which order."""

import dataclasses
from collections.abc import Sequence

from stele.gate import behaviour, correctness, judgement, model_parity, timing
from stele.gate.correctness_verdicts import agreeing_tasks
from stele.gate.entries import Verdict
from stele.gate.gate import Gate
from stele.gate.metrics import with_reported
from stele.measuring import progress
from stele.subjects import Program
from stele.subjects.base import BEHAVIOUR, GOLDEN_NUMBERS, OLD

BEFORE_ACCURACY = 0.6  # share of the budget
# by the reference of the subject: the verdicts on parity after which its time is measured
ACCEPTED = {GOLDEN_NUMBERS: ("PASS",), OLD: ("PASS", "INCONCLUSIVE")}


def run(gate: Gate) -> list[Verdict]:
    """Judge parity, then a share of the timing, then accuracy, then the rest of the timing.

    A task that NEW breaks is not timed; a subject whose arms cannot be compared is.
    """
    trial = gate.trial
    if trial.subject.reference == BEHAVIOUR:
        return of_program(gate)
    verdicts = correctness.missing(trial)
    if trial.parity:
        verdicts += ended(correctness.parity(gate))
    else:
        verdicts += model_parity.without_numbers(gate)
    if trial.fail_fast and is_failed(verdicts):
        return verdicts
    accepted = ACCEPTED[trial.subject.reference]
    broken = {verdict.task for verdict in verdicts if verdict.metric == "parity" and verdict.status not in accepted}
    cells = [cell for cell in trial.common_cells() if cell.task not in broken]
    if trial.accuracy and trial.metrics and any(trial.subject.has_accuracy(cell.task) for cell in cells):
        early = timing.measure(gate, cells, share=BEFORE_ACCURACY)
        if trial.fail_fast and is_failed(early):
            return [*verdicts, *early]
    if trial.accuracy:
        verdicts += ended(correctness.accuracy(gate, cells, agreeing_tasks(verdicts)))
    return [*verdicts, *(timing.measure(gate, cells) if trial.metrics else [])]


def of_program(gate: Gate) -> list[Verdict]:
    """Judge what the items of a program do and compute, and then time those that pass in both arms."""
    judged = behaviour.judge(gate)
    verdicts = ended(judged.verdicts)
    subject = gate.trial.subject
    assert isinstance(subject, Program)
    timed = dataclasses.replace(subject, timings=judged.timings)
    metrics = with_reported(gate.trial.metrics, judged.reported, subject.selected)
    trial = dataclasses.replace(gate.trial, subject=timed, cells=timed.cells(), metrics=tuple(metrics))
    if not (gate.trial.metrics or subject.selected) or not trial.cells or (trial.fail_fast and is_failed(verdicts)):
        return verdicts
    return [*verdicts, *timing.measure(dataclasses.replace(gate, trial=trial), trial.cells)]


def ended(verdicts: list[Verdict]) -> list[Verdict]:
    """Say the first sentence of the verdicts of a part that has ended, and return them."""
    for verdict in verdicts:
        task = f"{verdict.task}: " if len(verdicts) > 1 else ""
        status = "" if verdict.status == "PASS" else f"{verdict.status}: "
        progress.part(verdict.metric, f"{task}{status}{verdict.message.partition('. ')[0]}")
    return verdicts


def is_failed(verdicts: Sequence[Verdict]) -> bool:
    """Return whether one of the verdicts is against NEW."""
    return any(judgement.EXIT_CODES.get(verdict.status) == 1 for verdict in verdicts)
