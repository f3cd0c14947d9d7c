"""Whether NEW computes what OLD computes: the ladder of parity, and accuracy from several seeds."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from stele.gate.conditions import Watch
from stele.gate.metrics import ACCURACY_MARGIN
from stele.gate.record import Entry, Record
from stele.gate.trial import Cell, Trial, failed, launched
from stele.gate.verdict import Verdict, of_accuracy
from stele.measuring.run import Run
from stele.parity import examination, ladder
from stele.parity.ladder import Finding
from stele_worker import tasks

ARMS = ("old", "new")
SEEDS = (5, 10, 20)  # so many, and if they do not tell, so many

Say = Callable[[str], object]


def absent(trial: Trial) -> Iterator[Verdict]:
    """What OLD has and NEW has not."""
    for cell in trial.cells:
        old, new = trial.absences(cell)
        if new is not None and old is None:
            yield Verdict(*cell, "all", "MISSING", f"NEW has none: {new}")


def agreement(trial: Trial, record: Record, say: Say) -> Iterator[Verdict]:
    """The rung that NEW reaches, beside OLD's, for each task."""
    for task in dict.fromkeys(cell.task for cell in trial.present()):
        old, new = [climbed(trial, record, task, arm, say) for arm in ("old", "new")]
        before, after = ladder.first_difference(old), ladder.first_difference(new)
        if after is None:
            said = f"all rungs hold, up to {ladder.highest_rung(new)}"
            yield Verdict(task, "all", "parity", "PASS", said)
        elif before is None or after.rung < before.rung:
            yield Verdict(task, "all", "parity", "BROKEN", f"NEW is {ladder.message(after)}")
        else:
            said = f"OLD is {ladder.message(before)}; NEW is {ladder.message(after)}"
            yield Verdict(task, "all", "parity", "INCONCLUSIVE", said)


def climbed(trial: Trial, record: Record, task: str, arm: str, say: Say) -> list[Finding]:
    def climb() -> list[Finding]:
        return examination.run_ladder(trial.arm(arm), task, trial.settings, timeout=trial.timeout).findings

    def launch() -> Entry:
        say(f"parity of {task}, {arm}")
        watch = Watch(trial.settings)
        findings = climb()
        if len(findings) == 1 and findings[0].status == "differs":  # its worker failed: once may be chance
            findings = climb()
        told = [finding._asdict() for finding in findings]
        return {"findings": told, "took": watch.conditions().seconds}

    entry = record.once("parity", task, arm, launch=launch)
    return [Finding(**finding) for finding in entry["findings"]]


def learning(trial: Trial, record: Record, cells: list[Cell], say: Say) -> Iterator[Verdict]:
    """NEW's accuracy beside OLD's, of each task that is trained on labels that mean something."""
    for cell in cells:
        if cell.phase == "train" and tasks.make(cell.task, "paper").data is not None:
            yield accuracy(trial, record, cell, say)


def accuracy(trial: Trial, record: Record, cell: Cell, say: Say) -> Verdict:
    lost: list[float] = []
    for seed in range(SEEDS[-1]):
        known = record.get("accuracy", cell.task, seed) is not None
        decided = seed in SEEDS and told(cell, lost).status != "INCONCLUSIVE"
        if decided or (trial.over(record) and not known):
            break
        entry = trained(trial, record, cell, seed, say)
        for arm, said in failed(entry).items():
            status = "BROKEN" if arm == "new" else "INCONCLUSIVE"
            return Verdict(*cell, "accuracy", status, f"{arm.upper()}: {said}")
        old, new = (Run.from_dict(entry["runs"][arm]).accuracy or 0.0 for arm in ARMS)
        lost.append(old - new)
    return told(cell, lost)


def told(cell: Cell, lost: list[float]) -> Verdict:
    return of_accuracy(cell, lost, margin=ACCURACY_MARGIN, looks=SEEDS)


def trained(trial: Trial, record: Record, cell: Cell, seed: int, say: Say) -> Entry:
    def launch() -> Entry:
        say(f"accuracy of {cell.task}, seed {seed}")
        settings = replace(trial.settings, seed=seed)
        return launched(trial, cell, ARMS, settings, trial.training, timed=False)

    return record.once("accuracy", cell.task, seed, launch=launch)
