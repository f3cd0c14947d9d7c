"""Time and memory: pairs of launches, pass by pass, until every metric is decided or the time is up.

The order of the cells within a pass, and of the arms within a pair, is drawn from the trial's seed and the number of
the pass, so that a trial that was interrupted goes on as if it had not been.
"""

import math
import random
from collections.abc import Callable
from typing import NamedTuple

from stele import statistics
from stele.gate import judgement
from stele.gate.conditions import Conditions
from stele.gate.judgement import Judgement, Series
from stele.gate.metrics import METRICS, Metric
from stele.gate.record import Entry, Record
from stele.gate.trial import Cell, Trial, failure, launched
from stele.gate.verdict import Verdict, of_judgement
from stele.run import Run

MOST_SPREAD = 0.10  # of the control's differences, above which a machine tells nothing

Say = Callable[[str], object]


class Pair(NamedTuple):
    """The launches of one cell in one pass, each by arm: "old", "new", and of the control "again"."""

    values: dict[str, dict[str, float]]  # of each metric that has a number
    failures: dict[str, str]
    unfit: str | None  # why it does not count: a rule on conditions, never on what was measured


Pairs = dict[Cell, list[Pair]]


def timing(trial: Trial, record: Record, cells: list[Cell], say: Say) -> list[Verdict]:
    pairs: Pairs = {cell: [] for cell in cells}
    number = 0
    while active := wanting(trial, pairs):
        draw = random.Random(f"{trial.seed} {number}")
        draw.shuffle(active)
        for cell in active:
            if trial.over(record) and record.get("pair", str(cell), number, "new") is None:
                return judged(trial, pairs, stopped=True)
            pairs[cell].append(pair(trial, record, cell, number, draw))
        number += 1
        say(progress(trial, record, pairs, number))
    return judged(trial, pairs, stopped=False)


def pair(trial: Trial, record: Record, cell: Cell, number: int, draw: random.Random) -> Pair:
    """One launch of each arm, in an order drawn at random."""
    arms = ["old", "new", *(["again"] if cell == trial.control else [])]
    draw.shuffle(arms)
    entries = {}
    for arm in arms:

        def launch(arm: str = arm) -> Entry:
            return launched(trial, cell, arm, trial.settings, trial.scale)

        entries[arm] = record.once("pair", str(cell), number, arm, launch=launch)
    failures = {arm: failed for arm in entries if (failed := failure(entries[arm])) is not None}
    values = {arm: numbers(trial, entries[arm]) for arm in entries if arm not in failures}
    reasons = [Conditions(**entry["conditions"]).unfit for entry in entries.values()]
    return Pair(values, failures, next((reason for reason in reasons if reason), None))


def numbers(trial: Trial, entry: Entry) -> dict[str, float]:
    run = Run.from_dict(entry["run"])
    found = {metric.name: metric.of(run) for metric in trial.metrics}
    return {name: float(value) for name, value in found.items() if value}


def wanting(trial: Trial, pairs: Pairs) -> list[Cell]:
    """The cells of which more pairs may decide something."""
    found = judgement.judge(series(trial, sound(pairs)))
    return [cell for cell in sound(pairs) if any(found[key].open for key in found if of(cell, key))]


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
                found[f"{cell} {metric.name}"] = Series(metric.margin, metric.relevance, values)
    return found


def differences(metric: Metric, pairs: list[Pair], arm: str) -> list[float]:
    """log(arm) - log(old) of each pair that has both numbers."""
    both = [(pair.values["old"].get(metric.name), pair.values[arm].get(metric.name)) for pair in pairs]
    return [math.log(new / old) for old, new in both if old is not None and new is not None]


def judged(trial: Trial, pairs: Pairs, *, stopped: bool) -> list[Verdict]:
    verdicts = [failed(cell, of_cell) for cell, of_cell in pairs.items() if cell not in sound(pairs)]
    margins = {metric.name: metric.margin for metric in trial.metrics}
    for key, found in judgement.judge(series(trial, sound(pairs))).items():
        task, phase, metric = key.split(" ")
        verdicts.append(of_judgement(Cell(task, phase), metric, found, margins[metric], stopped=stopped))
    return [*verdicts, *control(trial, sound(pairs))]


def failed(cell: Cell, pairs: list[Pair]) -> Verdict:
    failures = next(pair.failures for pair in pairs if pair.failures)
    if "old" in failures or "again" in failures:
        return Verdict(*cell, "all", "INCONCLUSIVE", f"OLD: {next(iter(failures.values()))}")
    return Verdict(*cell, "all", "BROKEN", f"NEW: {failures['new']}")


def control(trial: Trial, pairs: Pairs) -> list[Verdict]:
    """OLD against OLD: nothing if that shows nothing, else a verdict on the machine."""
    fit = [pair for pair in pairs.get(trial.control, []) if pair.unfit is None]
    step = METRICS[0]
    values = differences(step, fit, "again")
    if len(values) < judgement.SCREEN:
        return []
    found = judgement.judge({"": Series(step.margin, step.relevance, values)})[""]
    said = trouble(found, statistics.spread(values))
    verdict = Verdict(*trial.control, "control", "INCONCLUSIVE", said or "", found.ratio, len(values))
    return [verdict] if said else []


def trouble(found: Judgement, spread: float) -> str | None:
    """What keeps a machine from telling OLD from NEW, from how it tells OLD from OLD."""
    if found.word in ("REGRESSED", "IMPROVED"):
        return "OLD differs from OLD: something here changes from launch to launch that is not the release"
    if spread > MOST_SPREAD:
        return f"OLD differs from OLD by {spread:.0%} from launch to launch: this machine is too busy to tell"
    return None


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
