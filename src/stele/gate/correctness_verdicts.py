"""The verdicts on the parity of the tasks and on accuracy, from the entries of a record. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from stele import text
from stele.gate.entries import Verdict
from stele.gate.metrics import ACCURACY_MARGIN, LONG
from stele.gate.record import Entry
from stele.gate.verdict import accuracy_verdict, unknown
from stele.measuring.run import Learning
from stele.parity import ladder
from stele.parity.ladder import Finding
from stele.subjects import Cell

# launches of NEW that all fail while all of OLD succeed. If both fail equally often, 4 of each have a probability of
# at most 1 / 4^4 = 0.4 %, whatever the rate (Barnard's exact test)
FAILED_LAUNCHES = 4
# trainings from one seed are equal if the losses of all steps are: rounding alone reaches 1e-4 in this many steps
EQUAL_LOSSES = 1e-3
EQUAL_ACCURACIES = 0.002  # fraction of the test samples
LEAST_STEPS = 10  # whose losses are equal in every bit, so that the rest of a training is not compared
SEEDS = (5, 10, 20)  # the next number is trained only if the one before leaves the verdict open


def ladder_verdict(task: str, old: Sequence[Finding], new: Sequence[Finding]) -> Verdict:
    """Return the verdict on a task from the findings of both arms."""
    before, after = ladder.first_difference(old), ladder.first_difference(new)
    if after is None:
        return Verdict(task, "all", "parity", "PASS", f"all rungs agree, up to rung {ladder.highest_rung(new)}")
    if before is None or after.rung < before.rung:
        return Verdict(task, "all", "parity", "BROKEN", f"NEW differs from OLD: {ladder.message(after)}")
    message = f"OLD differs, too. OLD: {ladder.message(before)}; NEW: {ladder.message(after)}"
    return Verdict(task, "all", "parity", "INCONCLUSIVE", message)


def trainings_verdict(cell: Cell, entries: Sequence[Entry]) -> tuple[Verdict, bool]:
    """Return the verdict on the trainings from the first seeds, and whether more trainings cannot change it."""
    losses = list[float]()
    for entry in entries:
        if entry["runs"] is None:
            return failed_training(cell, entry), True
        old, new = (entry["runs"][arm].learning for arm in ("old", "new"))
        if old.accuracy is None or new.accuracy is None:
            arm = "OLD" if old.accuracy is None else "NEW"
            return unknown(cell, "accuracy", f"{arm} reported no accuracy, so it cannot be compared."), True
        if not losses and (message := equal_trainings(old, new)):
            return Verdict(*cell, "accuracy", "PASS", message, None, 1), True
        losses.append(old.accuracy - new.accuracy)
    verdict = accuracy_verdict(cell, losses, margin=ACCURACY_MARGIN, looks=SEEDS)
    is_certain = len(losses) in SEEDS and verdict.status != "INCONCLUSIVE"
    return verdict, is_certain or len(losses) >= SEEDS[-1]


def agreeing_tasks(verdicts: Sequence[Verdict]) -> set[str]:
    """Return the tasks in which parity agrees: not those in which it is INCONCLUSIVE, although these are timed."""
    return {verdict.task for verdict in verdicts if (verdict.metric, verdict.status) == ("parity", "PASS")}


def equal_steps(cell: Cell, entries: Sequence[Entry]) -> Verdict | None:
    """Return PASS if the timed launches of all arms begin the same training, so that accuracy needs no other.

    Its losses are equal in every bit, in all steps of all passes. Parity has compared the outputs, the gradients and
    the updates before. What only later steps change, such as a schedule, is then not seen.
    """
    passes = [entry["runs"] for entry in entries if tuple(entry["key"][:2]) == (LONG, str(cell)) and entry["runs"]]
    losses = [[run.learning.losses for run in runs.values()] for runs in passes]
    count = min((len(of_arm) for of_pass in losses for of_arm in of_pass), default=0)
    starts = {tuple(of_arm[:count]) for of_pass in losses for of_arm in of_pass}
    if count < LEAST_STEPS or len(starts) > 1 or None in starts.pop():
        return None
    message = (
        f"the losses of the first {count} steps are equal in every bit, in all {text.counted(len(passes), 'pass')}; "
        "so the rest of the training was not compared"
    )
    return Verdict(*cell, "accuracy", "PASS", message)


def failed_training(cell: Cell, entry: Entry) -> Verdict:
    """Return BROKEN if every training of NEW failed and none of OLD did; INCONCLUSIVE otherwise."""
    messages = last_failures(entry)
    of_new = sum("new" in attempt["failures"] for attempt in entry["rounds"])
    if "old" in messages:
        return Verdict(*cell, "accuracy", "INCONCLUSIVE", f"OLD: {messages['old']}")
    status = "BROKEN" if of_new == len(entry["rounds"]) >= FAILED_LAUNCHES else "INCONCLUSIVE"
    return Verdict(*cell, "accuracy", status, f"NEW failed in {of_new} launches: {messages['new']}")


def equal_trainings(old: Learning, new: Learning) -> str | None:
    """Return why two trainings from the same seed are the same training, so that one seed is enough; else None."""
    assert old.accuracy is not None and new.accuracy is not None
    if not old.losses or len(old.losses) != len(new.losses):
        return None
    largest = 0.0
    for before, after in zip(old.losses, new.losses, strict=True):
        if before is None or after is None:
            return None
        largest = max(largest, abs(after - before) / max(abs(before), 1e-3))
    if largest > EQUAL_LOSSES or abs(old.accuracy - new.accuracy) > EQUAL_ACCURACIES:
        return None
    return (
        f"the losses of all {len(old.losses)} steps from one seed are equal (largest relative difference "
        f"{largest:.1e}); accuracy {new.accuracy:.2%}, OLD {old.accuracy:.2%}"
    )


def last_failures(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the last failure of each arm."""
    return {arm: message for attempt in entry["rounds"] for arm, message in attempt["failures"].items()}
