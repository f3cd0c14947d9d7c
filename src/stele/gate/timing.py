"""Time and memory: pairs of launches, pass by pass, until every metric is decided or the time is up.

The order of the cells within a pass, and of the arms within a pair, is drawn from the trial's seed and the number of
the pass, so that a trial that was interrupted goes on as if it had not been.
"""

import random
from collections.abc import Callable, Collection
from typing import NamedTuple

from stele.gate import judgement
from stele.gate.conditions import Conditions
from stele.gate.judgement import Judgement, Series
from stele.gate.metrics import METRICS, Metric
from stele.gate.record import Entry, Record
from stele.gate.trial import Cell, Trial, failed, last, launched
from stele.gate.verdict import Verdict, of_judgement
from stele.run import Run

CHEAPEST = (("gru", "infer"), ("cnn", "infer"), ("gru", "train"))
STEP = METRICS[0]
MEMORY = ("host-memory", "device-memory")
DIFFERS = "OLD differs from OLD: something here changes that is not the release"
UNTOLD = "OLD was not seen to be as fast as OLD: the machine is too busy, or the time was too short"

Say = Callable[[str], object]


class Pair(NamedTuple):
    """The launches of one cell in one pass, each by arm: "old", "new", and of the control "again"."""

    runs: dict[str, Run]
    failures: dict[str, str]
    stumbles: dict[str, str]  # attempts that failed
    unfit: str | None  # why it does not count: a rule on conditions, never on what was measured


Pairs = dict[Cell, list[Pair]]


def timing(trial: Trial, record: Record, cells: list[Cell], say: Say, *, share: float = 1.0) -> list[Verdict]:
    """Measure until a share of the budget is spent; what is in the record is not measured again."""
    pairs: Pairs = {cell: [] for cell in cells}
    number = 0
    while active := wanting(trial, pairs):
        draw, before = random.Random(f"{trial.seed} {number}"), record.launches
        draw.shuffle(active)
        for cell in active:
            if trial.over(record, share) and record.get("pair", str(cell), number) is None:
                return judged(trial, pairs, stopped=True)
            pairs[cell].append(
                pair(trial, record, cell, number, draw, controlled=cell == control(trial, cells))
            )
        number += 1
        if record.launches > before:  # what is remembered was told before
            say(progress(trial, record, pairs, number))
    return judged(trial, pairs, stopped=False)


def control(trial: Trial, cells: Collection[Cell]) -> Cell | None:
    """The cell that is measured OLD against OLD, too, in every pass: the cheapest. None for memory alone."""
    if all(metric.name in MEMORY for metric in trial.metrics):
        return None
    return next((Cell(*cell) for cell in CHEAPEST if cell in cells), next(iter(cells), None))


def pair(
    trial: Trial, record: Record, cell: Cell, number: int, draw: random.Random, *, controlled: bool
) -> Pair:
    """One launch of each arm, in an order drawn at random."""
    arms = ["old", "new", *(["again"] if controlled else [])]
    draw.shuffle(arms)

    def launch() -> Entry:
        return launched(trial, cell, arms, trial.settings, trial.scale)

    entry = record.once("pair", str(cell), number, launch=launch)
    runs = {arm: Run.from_dict(run) for arm, run in (entry["runs"] or {}).items()}
    for arm, run in runs.items():
        record.refuse_another_release(arm, run.versions)
    return Pair(runs, failed(entry), last(entry), Conditions(**entry["conditions"]).unfit)


def wanting(trial: Trial, pairs: Pairs) -> list[Cell]:
    """The cells of which more pairs may decide something; and the control's, as long as it is not told from itself."""
    found = judgement.judge(series(trial, sound(pairs)))
    cells = [cell for cell in sound(pairs) if any(found[key].open for key in found if of(cell, key))]
    own = control(trial, pairs)
    if own is None or own not in sound(pairs) or own in cells:
        return cells
    return [*cells, own] if cells or controlled(pairs[own]).open else []


def of(cell: Cell, key: str) -> bool:
    return key.startswith(f"{cell} ")


def sound(pairs: Pairs) -> Pairs:
    """The cells in which every launch gave a Run, if at a second attempt."""
    return {cell: of_cell for cell, of_cell in pairs.items() if not any(pair.failures for pair in of_cell)}


def series(trial: Trial, pairs: Pairs) -> dict[str, Series]:
    """Of each cell and metric, ``cnn train step``, the differences of the pairs that count."""
    found = {}
    for cell, of_cell in pairs.items():
        fit = [pair for pair in of_cell if pair.unfit is None]
        for metric in trial.metrics:
            values = differences(metric, fit, "new")
            if values or not fit:
                found[f"{cell} {metric.name}"] = Series(metric.margin, values)
    return found


def differences(metric: Metric, pairs: list[Pair], arm: str) -> list[float]:
    """log(arm) - log(old) of each pair that has both numbers."""
    found = (metric.difference(pair.runs["old"], pair.runs[arm]) for pair in pairs)
    return [difference for difference in found if difference is not None]


def judged(trial: Trial, pairs: Pairs, *, stopped: bool) -> list[Verdict]:
    verdicts = []
    margins = {metric.name: metric.margin for metric in trial.metrics}
    for key, found in judgement.judge(series(trial, sound(pairs))).items():
        task, phase, metric = key.split(" ")
        verdicts.append(of_judgement(Cell(task, phase), metric, found, margins[metric], stopped=stopped))
    machine = of_control(trial, pairs)
    if DIFFERS in [verdict.sentence for verdict in machine]:
        verdicts = [verdict._replace(word="INCONCLUSIVE") for verdict in verdicts]
    broken = [
        verdict for cell, of_cell in pairs.items() if (verdict := of_failures(cell, of_cell)) is not None
    ]
    return [*broken, *verdicts, *machine]


def of_failures(cell: Cell, pairs: list[Pair]) -> Verdict | None:
    """What is to be said of launches that failed: twice running, or now and then in NEW alone."""
    said = next((pair.failures for pair in pairs if pair.failures), {})
    old = said.get("old") or said.get("again")
    if old:
        return Verdict(*cell, "all", "INCONCLUSIVE", f"OLD: {old}")
    if said:
        return Verdict(*cell, "all", "BROKEN", f"NEW: {said['new']}")
    stumbles = [pair.stumbles["new"] for pair in pairs if "new" in pair.stumbles]
    if len(stumbles) > 1 and not any("old" in pair.stumbles for pair in pairs):
        told = f"NEW failed in {len(stumbles)} of {len(pairs)} launches at first, OLD in none: {stumbles[0]}"
        return Verdict(*cell, "all", "BROKEN", told)
    return None


def of_control(trial: Trial, pairs: Pairs) -> list[Verdict]:
    """The verdict on the machine: PASS where OLD was seen to be as fast as OLD."""
    cell = control(trial, pairs)
    if cell is None or cell not in sound(pairs):
        return []
    found = controlled(pairs[cell])
    word = "PASS" if found.word == "PASS" else "INCONCLUSIVE"
    said = {"PASS": "OLD is as fast as OLD", "INCONCLUSIVE": UNTOLD}.get(found.word, DIFFERS)
    return [Verdict(*cell, "control", word, said, found.ratio, found.pairs)]


def controlled(pairs: list[Pair]) -> Judgement:
    """What is found of OLD beside OLD."""
    values = differences(STEP, [pair for pair in pairs if pair.unfit is None], "again")
    return judgement.judge({"": Series(STEP.margin, values)})[""]


def progress(trial: Trial, record: Record, pairs: Pairs, number: int) -> str:
    """``pass 6: 12 of 20 decided, 11 PASS, 1 REGRESSED; 3.0 min gone, at most 17.0 left``"""
    found = judgement.judge(series(trial, sound(pairs))).values()
    words = [one.word for one in found if not one.open]
    told = "".join(f", {words.count(word)} {word}" for word in judgement.WORDS if word in words)
    left = max(trial.budget - record.spent, 0)
    return (
        f"pass {number}: {len(words)} of {len(found)} decided{told}; "
        f"{record.spent / 60:.1f} min gone, at most {left / 60:.1f} left"
    )
