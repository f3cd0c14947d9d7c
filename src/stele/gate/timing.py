"""Time and memory: pairs of launches, pass by pass, until every metric is decided or the time is up.

The launches of a pair take turns. The import is the same in every cell, and is judged in the cheapest.

The order of the cells within a pass, and of the arms within a pair, is drawn from the trial's seed and the number of
the pass, so that a trial that was interrupted goes on as if it had not been.
"""

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from stele.gate import judgement
from stele.gate.conditions import Conditions
from stele.gate.judgement import LOOKS, SCREEN, Judgement, Series
from stele.gate.metrics import METRICS, Metric, of_launch
from stele.gate.record import Entry, Record
from stele.gate.trial import Cell, Trial, failed, last, launched
from stele.gate.verdict import Verdict, of_judgement
from stele.measuring.run import Run

CHEAPEST = (("gru", "infer"), ("cnn", "infer"), ("gru", "train"))
STEP = METRICS[0]
MEMORY = ("host-memory", "device-memory")
DIFFERS = "OLD differs from OLD: something here changes that is not the release"
UNTOLD = "OLD was not seen to be as fast as OLD: the machine is too busy, or the time was too short"

Say = Callable[[str], object]


class Pair(NamedTuple):
    """The launches of one cell in one pass, each by arm: "old", "new", and of the control "control"."""

    runs: dict[str, Run]
    failures: dict[str, str]
    retries: dict[str, str]  # attempts that failed
    excluded: str | None  # why it does not count: a rule on conditions, never on what was measured


class Probe(NamedTuple):
    """Launches of a cell, "long" or "short", and what is judged by them."""

    cell: Cell
    kind: str
    metrics: tuple[Metric, ...]

    def launched(self, trial: Trial, arms: Sequence[str]) -> Entry:
        scale, settings = of_launch(self.kind, trial.scale, trial.settings)
        return launched(trial, self.cell, arms, settings, scale)


Pairs = dict[Probe, list[Pair]]


def timing(trial: Trial, record: Record, cells: list[Cell], say: Say, *, share: float = 1.0) -> list[Verdict]:
    """Measure until a share of the budget is spent; what is in the record is not measured again."""
    pairs: Pairs = {probe: [] for probe in probes(trial, cells)}
    number, own, began = 0, control(pairs), record.spent
    while active := wanting(pairs):
        draw, before = random.Random(f"{trial.seed} {number}"), record.launches
        draw.shuffle(active)
        for probe in active:
            key = probe.kind, str(probe.cell), number
            if trial.over(record, share) and record.get(*key) is None:
                return judged(trial, pairs, stopped=True)
            pairs[probe].append(pair(trial, record, probe, key, draw, controlled=probe == own))
        number += 1
        if record.launches == before:  # what is remembered was told before
            continue
        say(progress(trial, record, pairs, number))
        if number == 1 and began + SCREEN * (record.spent - began) > share * trial.budget:
            say(too_short(trial, record.spent - began))
    return judged(trial, pairs, stopped=False)


def too_short(trial: Trial, one_pass: float) -> str:
    """Said at once, rather than when the time is up."""
    least, most = (passes * one_pass / 60 for passes in (SCREEN, SCREEN + LOOKS[0]))
    return (
        f"a pass takes {one_pass / 60:.1f} min here, {SCREEN} decide little and {SCREEN + LOOKS[0]} most: "
        f"{least:.0f} to {most:.0f} min beside parity and accuracy. Stop, and raise --budget: --resume keeps it all"
    )


def probes(trial: Trial, cells: Iterable[Cell]) -> Iterator[Probe]:
    """What has to be launched for the metrics that are judged."""
    cells = sorted(cells, key=cost)
    for number, cell in enumerate(cells):
        there = [one for one in trial.metrics if one.name != "import" or number == 0]
        for kind in ("long", "short"):
            metrics = tuple(one for one in there if one.kind == kind)
            if metrics:
                yield Probe(cell, kind, metrics)


def cost(cell: Cell) -> int:
    return CHEAPEST.index(cell) if cell in CHEAPEST else len(CHEAPEST)


def control(pairs: Collection[Probe]) -> Probe | None:
    """What is measured OLD against OLD, too, in every pass: the cheapest that is timed. None for memory alone."""
    timed = [probe for probe in pairs if any(one.name not in MEMORY for one in probe.metrics)]
    return min(timed, key=lambda probe: (probe.kind, cost(probe.cell)), default=None)


def pair(
    trial: Trial,
    record: Record,
    probe: Probe,
    key: tuple[str | int, ...],
    draw: random.Random,
    *,
    controlled: bool,
) -> Pair:
    """One launch of each arm, in an order drawn at random."""
    arms = ["old", "new", *(["control"] if controlled else [])]
    draw.shuffle(arms)

    def launch() -> Entry:
        return probe.launched(trial, arms)

    entry = record.once(*key, launch=launch)
    runs = {arm: Run.from_dict(run) for arm, run in (entry["runs"] or {}).items()}
    for arm, run in runs.items():
        record.refuse_another_release(arm, run.versions)
    return Pair(runs, failed(entry), last(entry), Conditions(**entry["conditions"]).excluded)


def wanting(pairs: Pairs) -> list[Probe]:
    """Of what more pairs may decide something; and the control, as long as it is not told from itself."""
    found = judgement.judge(series(sound(pairs)))

    def undecided(probe: Probe) -> bool:
        keys = [f"{probe.cell} {metric.name}" for metric in probe.metrics]
        return any(found[key].open for key in keys if key in found)

    wanted = [probe for probe in sound(pairs) if undecided(probe)]
    own = control(pairs)
    if own is None or own not in sound(pairs) or own in wanted:
        return wanted
    return [*wanted, own] if wanted or controlled(pairs[own]).open else []


def sound(pairs: Pairs) -> Pairs:
    """The cells in which every launch gave a Run, if at a second attempt."""
    broken = {probe.cell for probe, found in pairs.items() if any(pair.failures for pair in found)}
    return {probe: found for probe, found in pairs.items() if probe.cell not in broken}


def series(pairs: Pairs) -> dict[str, Series]:
    """Of each cell and metric, ``cnn train step``, the differences of the pairs that count."""
    found = {}
    for probe, launches in pairs.items():
        fit = [pair for pair in launches if pair.excluded is None]
        for metric in probe.metrics:
            values = differences(metric, fit, "new")
            if values or not fit:
                found[f"{probe.cell} {metric.name}"] = Series(metric.margin, values)
    return found


def differences(metric: Metric, pairs: list[Pair], arm: str) -> list[float]:
    """log(arm) - log(old) of each pair that has both numbers."""
    found = (metric.difference(pair.runs["old"], pair.runs[arm]) for pair in pairs)
    return [difference for difference in found if difference is not None]


def judged(trial: Trial, pairs: Pairs, *, stopped: bool) -> list[Verdict]:
    verdicts = []
    margins = {metric.name: metric.margin for metric in trial.metrics}
    for key, found in judgement.judge(series(sound(pairs))).items():
        task, phase, metric = key.split(" ")
        verdicts.append(of_judgement(Cell(task, phase), metric, found, margins[metric], stopped=stopped))
    machine = of_control(pairs)
    if DIFFERS in [verdict.message for verdict in machine]:
        verdicts = [verdict._replace(status="INCONCLUSIVE") for verdict in verdicts]
    launches: dict[Cell, list[Pair]] = {}
    for probe, of_probe in pairs.items():
        launches.setdefault(probe.cell, []).extend(of_probe)
    broken = [
        verdict for cell, all_of in launches.items() if (verdict := of_failures(cell, all_of)) is not None
    ]
    return [*broken, *verdicts, *machine]


def of_failures(cell: Cell, pairs: list[Pair]) -> Verdict | None:
    """What is to be said of launches that failed: twice running, or now and then in NEW alone."""
    said = next((pair.failures for pair in pairs if pair.failures), {})
    old = said.get("old") or said.get("control")
    if old:
        return Verdict(*cell, "all", "INCONCLUSIVE", f"OLD: {old}")
    if said:
        return Verdict(*cell, "all", "BROKEN", f"NEW: {said['new']}")
    retries = [pair.retries["new"] for pair in pairs if "new" in pair.retries]
    if len(retries) > 1 and not any("old" in pair.retries for pair in pairs):
        told = f"NEW failed in {len(retries)} of {len(pairs)} launches at first, OLD in none: {retries[0]}"
        return Verdict(*cell, "all", "BROKEN", told)
    return None


def of_control(pairs: Pairs) -> list[Verdict]:
    """The verdict on the machine: PASS where OLD was seen to be as fast as OLD."""
    own = control(pairs)
    if own is None or own not in sound(pairs):
        return []
    found = controlled(pairs[own])
    status = "PASS" if found.status == "PASS" else "INCONCLUSIVE"
    said = {"PASS": "OLD is as fast as OLD", "INCONCLUSIVE": UNTOLD}.get(found.status, DIFFERS)
    return [Verdict(*own.cell, "control", status, said, found.ratio, found.pairs)]


def controlled(pairs: list[Pair]) -> Judgement:
    """What is found of OLD beside OLD."""
    values = differences(STEP, [pair for pair in pairs if pair.excluded is None], "control")
    return judgement.judge({"": Series(STEP.margin, values)})[""]


def progress(trial: Trial, record: Record, pairs: Pairs, number: int) -> str:
    """``pass 6: 12 of 20 decided, 11 PASS, 1 REGRESSED; 3.0 min gone, at most 17.0 left``"""
    found = judgement.judge(series(sound(pairs))).values()
    words = [one.status for one in found if not one.open]
    told = "".join(f", {words.count(status)} {status}" for status in judgement.STATUSES if status in words)
    left = max(trial.budget - record.spent, 0)
    return (
        f"pass {number}: {len(words)} of {len(found)} decided{told}; "
        f"{record.spent / 60:.1f} min gone, at most {left / 60:.1f} left"
    )
