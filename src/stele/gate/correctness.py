"""Whether NEW computes what OLD computes: the parity ladder, and the accuracy after training from several seeds."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from stele.gate import durations, model_parity
from stele.gate.launcher import Launcher, failure_messages
from stele.gate.metrics import ACCURACY_MARGIN
from stele.gate.record import Entry, Record
from stele.gate.trial import Cell, Trial
from stele.gate.verdict import Verdict, accuracy_verdict, unknown
from stele.measuring.conditions import Monitor
from stele.measuring.run import Run
from stele.parity import devices, examination, ladder
from stele.parity.ladder import Finding
from stele_worker import tasks

ARMS = ("old", "new")
# launches of NEW that all fail while all of OLD succeed. If both fail equally often, 4 of each have a probability of
# at most 1 / 4^4 = 0.4 %, whatever the rate (Barnard's exact test)
FAILED_LAUNCHES = 4
# trainings from one seed are equal if the losses of all steps are: rounding alone reaches 1e-4 in this many steps
EQUAL_LOSSES = 1e-3
TRAINING_ATTEMPTS = 3  # NEW then fails in six launches, and OLD succeeds in three of its own
EQUAL_ACCURACIES = 0.002  # fraction of the test samples
SEEDS = (5, 10, 20)  # the next number is trained only if the one before leaves the verdict open

Say = Callable[[str], object]


def missing_verdicts(trial: Trial) -> Iterator[Verdict]:
    """Yield MISSING for each cell that OLD has and NEW does not have."""
    for cell in trial.cells:
        old, new = trial.absences(cell)
        if new is not None and old is None:
            yield Verdict(*cell, "all", "MISSING", f"NEW does not have it: {new}")


def parity_verdicts(trial: Trial, record: Record, say: Say) -> Iterator[Verdict]:
    """Yield a verdict for each task: BROKEN if NEW differs from the golden numbers at a lower rung than OLD.

    The reference of a user's model is OLD.
    """
    if trial.model is not None:
        yield from model_parity.verdicts(trial, trial.model, record, say)
        return
    for task in dict.fromkeys(cell.task for cell in trial.common_cells()):
        new, failure = parity_findings(trial, record, task, "new", say)
        old, _ = parity_findings(trial, record, task, "old", say, until_failure=failure is not None)
        before, after = ladder.first_difference(old), ladder.first_difference(new)
        if after is None:
            message = f"all rungs agree, up to rung {ladder.highest_rung(new)}"
            yield Verdict(task, "all", "parity", "PASS", message)
        elif before is None or after.rung < before.rung:
            message = f"NEW differs from OLD: {ladder.message(after)}"
            yield Verdict(task, "all", "parity", "BROKEN", message)
        else:
            message = f"OLD differs, too. OLD: {ladder.message(before)}; NEW: {ladder.message(after)}"
            yield Verdict(task, "all", "parity", "INCONCLUSIVE", message)


def parity_findings(
    trial: Trial, record: Record, task: str, arm: str, say: Say, *, until_failure: bool = False
) -> tuple[list[Finding], str | None]:
    """Return the findings of an arm, and why its worker failed; None if it did not.

    It is launched up to FAILED_LAUNCHES times until its worker does not fail. ``until_failure`` launches it until its
    worker fails, to see whether it ever does.
    """

    def launch() -> Entry:
        durations.announce(trial, f"parity of {task}, {arm.upper()}", [(Cell(task, "all"), "parity")], say)
        monitor, findings, failure = Monitor(trial.settings), list[Finding](), None
        for _ in range(FAILED_LAUNCHES):
            findings, failure = climb(trial, task, arm)
            if (failure is not None) == until_failure:
                break
        took = monitor.conditions().seconds
        durations.remember(trial, Cell(task, "all"), "parity", took)
        return {
            "findings": [finding._asdict() for finding in findings],
            "failure": failure,
            "took": took,
        }

    entry = record.get_or_launch("parity", task, arm, launch=launch)
    return [Finding(**finding) for finding in entry["findings"]], entry.get("failure")


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


def accuracy_verdicts(trial: Trial, record: Record, cells: list[Cell], say: Say) -> Iterator[Verdict]:
    """Yield a verdict on NEW's accuracy for each task that is trained on real labels."""
    for cell in cells:
        if cell.phase == "train" and has_accuracy(trial, cell):
            yield compare_accuracy(trial, record, cell, say)


def has_accuracy(trial: Trial, cell: Cell) -> bool:
    """Return whether a cell is trained on a data set with labels; that of a user's model is in its task file."""
    if trial.model is not None:
        return trial.model.accuracy
    return tasks.make(cell.task, "paper").data is not None


def compare_accuracy(trial: Trial, record: Record, cell: Cell, say: Say) -> Verdict:
    losses, took = list[float](), list[float]()
    durations.announce(trial, f"accuracy of {cell.task}, for each seed", [(cell, "accuracy")], say)
    for seed in range(SEEDS[-1]):
        recorded = record.get("accuracy", cell.task, seed) is not None
        decided = seed in SEEDS and judge_accuracy(cell, losses).status != "INCONCLUSIVE"
        if decided or (trial.budget_spent(record) and not recorded):
            break
        entry = train_arms(trial, record, cell, seed, say)
        if entry["runs"] is None:
            return failed_training(cell, entry)
        old, new = (Run.from_dict(entry["runs"][arm]) for arm in ARMS)
        if old.accuracy is None or new.accuracy is None:
            arm = "OLD" if old.accuracy is None else "NEW"
            return unknown(cell, "accuracy", f"{arm} reported no accuracy, so it cannot be compared.")
        if seed == 0 and (message := equal_trainings(old, new)):
            return Verdict(*cell, "accuracy", "PASS", message, None, 1)
        losses.append(old.accuracy - new.accuracy)
        took.append(float(entry["took"]))
    verdict, more = judge_accuracy(cell, losses), [count for count in SEEDS if count > len(losses)]
    if verdict.status != "INCONCLUSIVE" or not more:
        return verdict
    seconds = sum(took) / len(took) if took else durations.estimate(trial, cell, "accuracy")
    return verdict._replace(
        needs=(more[0] - len(losses)) * (durations.UNKNOWN if seconds is None else seconds)
    )


def failed_training(cell: Cell, entry: Entry) -> Verdict:
    """Return BROKEN if every training of NEW failed and none of OLD did; INCONCLUSIVE otherwise."""
    messages = failure_messages(entry)
    of_new = sum("new" in one["failures"] for one in entry["rounds"])
    if "old" in messages:
        return Verdict(*cell, "accuracy", "INCONCLUSIVE", f"OLD: {messages['old']}")
    status = "BROKEN" if of_new == len(entry["rounds"]) >= FAILED_LAUNCHES else "INCONCLUSIVE"
    return Verdict(*cell, "accuracy", status, f"NEW failed in {of_new} launches: {messages['new']}")


def equal_trainings(old: Run, new: Run) -> str | None:
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


def judge_accuracy(cell: Cell, losses: list[float]) -> Verdict:
    return accuracy_verdict(cell, losses, margin=ACCURACY_MARGIN, looks=SEEDS)


def train_arms(trial: Trial, record: Record, cell: Cell, seed: int, say: Say) -> Entry:
    def launch() -> Entry:
        say(f"accuracy of {cell.task}, seed {seed}")
        settings = replace(trial.settings, seed=seed)
        launcher = Launcher(
            trial, cell, settings, trial.training, timed=False, attempts=TRAINING_ATTEMPTS,
            left=trial.budget - record.spent,
        )  # fmt: skip
        entry = launcher.launch(ARMS)
        durations.remember(trial, cell, "accuracy", entry["took"])
        return entry

    return record.get_or_launch("accuracy", cell.task, seed, launch=launch)
