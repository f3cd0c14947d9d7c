"""Whether NEW computes what OLD computes: the parity ladder, and the accuracy after training from several seeds."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from stele.gate import model_parity
from stele.gate.conditions import Monitor
from stele.gate.metrics import ACCURACY_MARGIN
from stele.gate.record import Entry, Record
from stele.gate.trial import Cell, Trial, failure_messages, launch_arms
from stele.gate.verdict import Verdict, accuracy_verdict
from stele.measuring.run import Run
from stele.parity import examination, ladder
from stele.parity.ladder import Finding
from stele_worker import tasks

ARMS = ("old", "new")
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
        old, new = [parity_findings(trial, record, task, arm, say) for arm in ("old", "new")]
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


def parity_findings(trial: Trial, record: Record, task: str, arm: str, say: Say) -> list[Finding]:
    def examine() -> list[Finding]:
        return examination.run_ladder(trial.arm(arm), task, trial.settings, timeout=trial.timeout).findings

    def launch() -> Entry:
        say(f"parity of {task}, {arm}")
        monitor = Monitor(trial.settings)
        findings = examine()
        if len(findings) == 1 and findings[0].status == "differs":  # its worker failed: once may be chance
            findings = examine()
        return {
            "findings": [finding._asdict() for finding in findings],
            "took": monitor.conditions().seconds,
        }

    entry = record.get_or_launch("parity", task, arm, launch=launch)
    return [Finding(**finding) for finding in entry["findings"]]


def accuracy_verdicts(trial: Trial, record: Record, cells: list[Cell], say: Say) -> Iterator[Verdict]:
    """Yield a verdict on NEW's accuracy for each task that is trained on real labels."""
    for cell in cells:
        if cell.phase == "train" and has_accuracy(trial, cell):
            yield compare_accuracy(trial, record, cell, say)


def has_accuracy(trial: Trial, cell: Cell) -> bool:
    """Return whether a cell is trained on labels with a meaning; those of a user's model are in its task file."""
    if trial.model is not None:
        return trial.model.accuracy
    return tasks.make(cell.task, "paper").data is not None


def compare_accuracy(trial: Trial, record: Record, cell: Cell, say: Say) -> Verdict:
    losses: list[float] = []
    for seed in range(SEEDS[-1]):
        recorded = record.get("accuracy", cell.task, seed) is not None
        decided = seed in SEEDS and judge_accuracy(cell, losses).status != "INCONCLUSIVE"
        if decided or (trial.budget_spent(record) and not recorded):
            break
        entry = train_arms(trial, record, cell, seed, say)
        for arm, message in failure_messages(entry).items():
            status = "BROKEN" if arm == "new" else "INCONCLUSIVE"
            return Verdict(*cell, "accuracy", status, f"{arm.upper()}: {message}")
        old, new = (Run.from_dict(entry["runs"][arm]).accuracy or 0.0 for arm in ARMS)
        losses.append(old - new)
    return judge_accuracy(cell, losses)


def judge_accuracy(cell: Cell, losses: list[float]) -> Verdict:
    return accuracy_verdict(cell, losses, margin=ACCURACY_MARGIN, looks=SEEDS)


def train_arms(trial: Trial, record: Record, cell: Cell, seed: int, say: Say) -> Entry:
    def launch() -> Entry:
        say(f"accuracy of {cell.task}, seed {seed}")
        settings = replace(trial.settings, seed=seed)
        return launch_arms(trial, cell, ARMS, settings, trial.training, timed=False)

    return record.get_or_launch("accuracy", cell.task, seed, launch=launch)
