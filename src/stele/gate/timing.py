"""Time and memory: measure pairs of launches, pass by pass, until every metric is decided or the budget is spent.

The launches of a pair take turns. The import is the same in every cell, so it is judged in the cheapest one.

The order of the cells within a pass, and of the arms within a pair, is drawn from the trial's seed and the number of
the pass. A resumed trial therefore continues in the same order.
"""

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from stele.gate import judgement
from stele.gate.conditions import Conditions
from stele.gate.judgement import LOOKS, SCREEN, Judgement, Series
from stele.gate.metrics import METRICS, Metric, launch_settings
from stele.gate.record import Entry, Record
from stele.gate.trial import Cell, Trial, failure_messages, last_failures, launch_arms
from stele.gate.verdict import Verdict, from_judgement
from stele.measuring.run import Run

CHEAPEST = (("gru", "infer"), ("cnn", "infer"), ("gru", "train"))
STEP = METRICS[0]
MEMORY = ("host-memory", "device-memory")
CONTROL_PASSED = "two measurements of OLD are equal within the margin"
CONTROL_DIFFERS = (
    "The control failed: OLD differs from itself, so the machine changed during the measurement."
)
CONTROL_UNDECIDED = (
    "The control failed: two measurements of OLD could not be shown to be equal. "
    "The machine is too noisy, or the budget too short."
)

Say = Callable[[str], object]


class Pair(NamedTuple):
    """The launches of one cell in one pass, by arm: "old", "new", and "control" where OLD is measured twice."""

    runs: dict[str, Run]
    failures: dict[str, str]
    retries: dict[str, str]  # attempts that failed
    excluded: str | None  # why it does not count: a rule on conditions, never on what was measured


class Probe(NamedTuple):
    """The launches of a cell of one kind, "long" or "short", and the metrics that they measure."""

    cell: Cell
    kind: str
    metrics: tuple[Metric, ...]

    def launch(self, trial: Trial, arms: Sequence[str]) -> Entry:
        scale, settings = launch_settings(self.kind, trial.scale, trial.settings)
        return launch_arms(trial, self.cell, arms, settings, scale)


Pairs = dict[Probe, list[Pair]]


def measure_pairs(
    trial: Trial, record: Record, cells: list[Cell], say: Say, *, share: float = 1.0
) -> list[Verdict]:
    """Measure until all is decided or a share of the budget is spent. Launches in the record are not repeated."""
    pairs: Pairs = {probe: [] for probe in make_probes(trial, cells)}
    number, control, spent_before = 0, control_probe(pairs), record.spent
    while active := undecided(pairs):
        draw, launches_before = random.Random(f"{trial.seed} {number}"), record.launches
        draw.shuffle(active)
        for probe in active:
            key = probe.kind, str(probe.cell), number
            if trial.budget_spent(record, share) and record.get(*key) is None:
                return make_verdicts(trial, pairs, stopped=True)
            pairs[probe].append(measure_pair(trial, record, probe, key, draw, with_control=probe == control))
        number += 1
        if record.launches == launches_before:  # the whole pass is from the record: it was reported before
            continue
        say(progress_message(trial, record, pairs, number))
        if number == 1 and spent_before + SCREEN * (record.spent - spent_before) > share * trial.budget:
            say(budget_warning(trial, spent_before, record.spent - spent_before))
    return make_verdicts(trial, pairs, stopped=False)


def budget_warning(trial: Trial, spent_before: float, pass_seconds: float) -> str:
    """Return the warning that the budget is too small, given after the first pass rather than at the end."""
    least, most = (passes * pass_seconds / 60 for passes in (SCREEN, SCREEN + LOOKS[0]))
    return (
        f"One pass takes {pass_seconds / 60:.1f} min on this machine. A verdict needs {SCREEN} to "
        f"{SCREEN + LOOKS[0]} passes, so {least:.0f} to {most:.0f} min, in addition to parity and accuracy; "
        f"the budget is {trial.budget / 60:.0f} min. "
        f"Restart with --budget {int(spent_before / 60 + most) + 1}m --resume to keep what was measured."
    )


def make_probes(trial: Trial, cells: Iterable[Cell]) -> Iterator[Probe]:
    """Yield the probes that measure the trial's metrics."""
    cells = sorted(cells, key=cost_rank)
    for number, cell in enumerate(cells):
        wanted = [metric for metric in trial.metrics if metric.name != "import" or number == 0]
        for kind in ("long", "short"):
            metrics = tuple(metric for metric in wanted if metric.kind == kind)
            if metrics:
                yield Probe(cell, kind, metrics)


def cost_rank(cell: Cell) -> int:
    return CHEAPEST.index(cell) if cell in CHEAPEST else len(CHEAPEST)


def control_probe(pairs: Collection[Probe]) -> Probe | None:
    """Return the probe that also measures OLD against OLD, in every pass: the cheapest timed one.

    None if the gate judges memory alone.
    """
    timed = [probe for probe in pairs if any(metric.name not in MEMORY for metric in probe.metrics)]
    return min(timed, key=lambda probe: (probe.kind, cost_rank(probe.cell)), default=None)


def measure_pair(
    trial: Trial,
    record: Record,
    probe: Probe,
    key: tuple[str | int, ...],
    draw: random.Random,
    *,
    with_control: bool,
) -> Pair:
    """Launch each arm once, in random order, or take the launches from the record."""
    arms = ["old", "new", *(["control"] if with_control else [])]
    draw.shuffle(arms)

    def launch() -> Entry:
        return probe.launch(trial, arms)

    entry = record.get_or_launch(*key, launch=launch)
    runs = {arm: Run.from_dict(run) for arm, run in (entry["runs"] or {}).items()}
    for arm, run in runs.items():
        record.check_versions(arm, run.versions)
    conditions = Conditions(**entry["conditions"])
    return Pair(runs, failure_messages(entry), last_failures(entry), conditions.excluded)


def undecided(pairs: Pairs) -> list[Probe]:
    """Return the probes that more pairs could still decide, and the control until it is decided."""
    valid = without_failures(pairs)
    judgements = judgement.judge(make_series(valid))

    def is_open(probe: Probe) -> bool:
        keys = [f"{probe.cell} {metric.name}" for metric in probe.metrics]
        return any(judgements[key].open for key in keys if key in judgements)

    probes = [probe for probe in valid if is_open(probe)]
    control = control_probe(pairs)
    if control is None or control not in valid or control in probes:
        return probes
    return [*probes, control] if probes or judge_control(pairs[control]).open else []


def without_failures(pairs: Pairs) -> Pairs:
    """Return the pairs of the cells in which every launch gave a Run, at the first or the second attempt."""
    failed = {probe.cell for probe, of_probe in pairs.items() if any(pair.failures for pair in of_probe)}
    return {probe: of_probe for probe, of_probe in pairs.items() if probe.cell not in failed}


def make_series(pairs: Pairs) -> dict[str, Series]:
    """Return the differences of the pairs that count, by cell and metric: ``cnn train step``."""
    series = {}
    for probe, of_probe in pairs.items():
        counted = [pair for pair in of_probe if pair.excluded is None]
        for metric in probe.metrics:
            values = differences(metric, counted, "new")
            if values or not counted:
                series[f"{probe.cell} {metric.name}"] = Series(metric.margin, values)
    return series


def differences(metric: Metric, pairs: list[Pair], arm: str) -> list[float]:
    """Return log(arm) - log(old) of each pair that has both numbers."""
    values = (metric.difference(pair.runs["old"], pair.runs[arm]) for pair in pairs)
    return [value for value in values if value is not None]


def make_verdicts(trial: Trial, pairs: Pairs, *, stopped: bool) -> list[Verdict]:
    """Return failures first, then a verdict for each metric, then the control."""
    verdicts = []
    margins = {metric.name: metric.margin for metric in trial.metrics}
    for key, result in judgement.judge(make_series(without_failures(pairs))).items():
        task, phase, metric = key.split(" ")
        verdicts.append(from_judgement(Cell(task, phase), metric, result, margins[metric], stopped=stopped))
    control = control_verdicts(pairs)
    if CONTROL_DIFFERS in [verdict.message for verdict in control]:
        verdicts = [verdict._replace(status="INCONCLUSIVE") for verdict in verdicts]
    by_cell: dict[Cell, list[Pair]] = {}
    for probe, of_probe in pairs.items():
        by_cell.setdefault(probe.cell, []).extend(of_probe)
    failures = [
        verdict
        for cell, of_cell in by_cell.items()
        if (verdict := failure_verdict(cell, of_cell)) is not None
    ]
    return [*failures, *verdicts, *control]


def failure_verdict(cell: Cell, pairs: list[Pair]) -> Verdict | None:
    """Return BROKEN if NEW failed twice in a row, or now and then while OLD never did.

    INCONCLUSIVE if OLD failed twice in a row; else None.
    """
    failures = next((pair.failures for pair in pairs if pair.failures), {})
    old = failures.get("old") or failures.get("control")
    if old:
        return Verdict(*cell, "all", "INCONCLUSIVE", f"OLD: {old}")
    if failures:
        return Verdict(*cell, "all", "BROKEN", f"NEW: {failures['new']}")
    retries = [pair.retries["new"] for pair in pairs if "new" in pair.retries]
    if len(retries) > 1 and not any("old" in pair.retries for pair in pairs):
        message = (
            f"The first attempt of NEW failed in {len(retries)} of {len(pairs)} launches, that of OLD in none: "
            f"{retries[0]}"
        )
        return Verdict(*cell, "all", "BROKEN", message)
    return None


def control_verdicts(pairs: Pairs) -> list[Verdict]:
    """Return the verdict on the control, PASS if both measurements of OLD are equal; none without a control."""
    probe = control_probe(pairs)
    if probe is None or probe not in without_failures(pairs):
        return []
    result = judge_control(pairs[probe])
    status = "PASS" if result.status == "PASS" else "INCONCLUSIVE"
    messages = {"PASS": CONTROL_PASSED, "INCONCLUSIVE": CONTROL_UNDECIDED}
    message = messages.get(result.status, CONTROL_DIFFERS)
    return [Verdict(*probe.cell, "control", status, message, result.ratio, result.pairs)]


def judge_control(pairs: list[Pair]) -> Judgement:
    """Judge the control: OLD measured against OLD."""
    values = differences(STEP, [pair for pair in pairs if pair.excluded is None], "control")
    return judgement.judge({"": Series(STEP.margin, values)})[""]


def progress_message(trial: Trial, record: Record, pairs: Pairs, number: int) -> str:
    """``pass 6: 12 of 20 metrics decided, 11 PASS, 1 REGRESSED; 3.0 min used, at most 17.0 min left``"""
    judgements = judgement.judge(make_series(without_failures(pairs))).values()
    decided = [result.status for result in judgements if not result.open]
    counts = "".join(
        f", {decided.count(status)} {status}" for status in judgement.STATUSES if status in decided
    )
    left = max(trial.budget - record.spent, 0)
    return (
        f"pass {number}: {len(decided)} of {len(judgements)} metrics decided{counts}; "
        f"{record.spent / 60:.1f} min used, at most {left / 60:.1f} min left"
    )
