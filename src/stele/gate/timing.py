"""Time and memory: measure passes until every metric is decided or the budget is spent.

A pass launches each arm of a cell once: OLD twice and NEW twice, in an order that is drawn from the trial's seed. So a
resumed trial continues in the same order. Two passes are measured at the same time, if there is a core and memory for
each. The cheapest cell comes first, because it is decided soonest. The import is the same in every cell, so it is
judged in the cheapest one.
"""

import itertools
import math
import random
from collections.abc import Callable, Sequence

from stele.gate import durations, judgement
from stele.gate.launcher import passes_at_once
from stele.gate.metrics import KINDS
from stele.gate.record import Record
from stele.gate.state import Probe, Result, State
from stele.gate.trial import ARMS, Cell, Trial
from stele.gate.verdict import Verdict, message_of
from stele.gate.verdicts import make_verdicts
from stele.measuring import progress
from stele.measuring.conditions import Conditions, busiest
from stele.measuring.content import NOTHING
from stele.measuring.run import Run

Say = Callable[[str], object]


def measure_passes(
    trial: Trial, record: Record, cells: list[Cell], say: Say, *, share: float = 1.0
) -> list[Verdict]:
    """Measure until all is decided or a share of the budget is spent. Launches in the record are not repeated."""
    with progress.counted("budget", trial.budget) as show:
        return measure_until_decided(State(trial, cells), trial, record, say, share, show)


def measure_until_decided(
    state: State, trial: Trial, record: Record, say: Say, share: float, show: Callable[[float], None]
) -> list[Verdict]:
    """Measure as ``measure_passes`` does. ``show`` draws how many seconds are spent, between launches."""
    announced, warned = set[tuple[Cell, str]](), False
    estimated = durations.announce_timing(trial, record, list(state.results), say)
    while active := state.open_probes():
        launches_before = record.launches
        for planned in active:
            probe = next_probe(planned, state, share * trial.budget - record.spent)
            if probe is None:
                continue
            results = state.results[probe]
            is_new = record.get(*key_of(probe, len(results))) is None
            if trial.budget_spent(record, share) and is_new:
                return make_verdicts(state, stopped=True)
            results += measure_next(trial, record, probe, results)
            warned = warned or (is_new and warn_of_load(results[-1].conditions, say))
            show(record.spent)
            ended = announce(state, announced, say)
            if ended and trial.fail_fast:
                return make_verdicts(state, stopped=True)
        # a pass that is from the record was reported when it was measured
        if record.launches > launches_before:
            say(progress_message(trial, record, state))
            if not estimated:
                number = min(map(len, state.results.values()))
                estimated = durations.announce_timing(
                    trial, record, list(state.results), say, measured=number
                )
    return make_verdicts(state, stopped=False)


def warn_of_load(conditions: Conditions, say: Say) -> bool:
    """Say that other processes use the machine, and which ones do it now. Return whether they do."""
    if not conditions.busy:
        return False
    names = ", ".join(busiest())
    say(
        f"Other processes use {conditions.foreign:.0%} of the processors{names and f': {names}'}. "
        "The verdict needs more time. Stop them, or use an idle machine."
    )
    return True


def next_probe(planned: Probe, state: State, left: float) -> Probe | None:
    """Return the planned probe; None if it is decided meanwhile.

    Return another one if ``left`` seconds decide it only if it comes first, and cannot decide the planned one.
    """
    if planned not in state.open_probes():
        return None
    times = state.seconds_to_verdict()
    if times.get(planned, math.inf) <= left:
        return planned
    for probe, seconds in times.items():
        took = state.results[planned][-1].took if state.results[planned] else state.results[probe][-1].took
        if probe != planned and seconds <= left < seconds + took:
            return probe
    return planned


def key_of(probe: Probe, number: int) -> tuple[str | int, ...]:
    """Return the key of a pass in the record."""
    return probe.kind, str(probe.cell), number


def measure_next(trial: Trial, record: Record, probe: Probe, earlier: Sequence[Result]) -> list[Result]:
    """Take the next pass from the record, or measure it, perhaps with the one after it at the same time."""
    first = len(earlier)
    if record.get(*key_of(probe, first)) is None:
        launch_passes(trial, record, probe, earlier)
    numbers = itertools.takewhile(lambda number: record.get(*key_of(probe, number)), itertools.count(first))
    return [to_result(record, key_of(probe, number)) for number in numbers]


def launch_passes(trial: Trial, record: Record, probe: Probe, earlier: Sequence[Result]) -> None:
    """Measure the next passes at the same time. All are in the record before this returns."""
    measured = [result.runs for result in earlier if result.runs]
    busy = bool(earlier) and earlier[-1].conditions.busy
    alone = KINDS[probe.kind].trains  # its seeds follow from the number of the pass
    count, first = 1 if alone else passes_at_once(trial, measured, busy=busy), len(earlier)
    numbers = range(first, first + count)
    keys = list(
        itertools.takewhile(lambda key: record.get(*key) is None, (key_of(probe, one) for one in numbers))
    )
    record.check(NOTHING)
    launcher = probe.launcher(trial, earlier)._replace(left=trial.budget - record.spent)
    entries = launcher.launch_passes([order_of(trial, key) for key in keys])
    record.add(dict(zip(keys, entries, strict=False)))  # only one entry if a launch failed
    if entries[0]["runs"]:
        durations.remember(trial, probe.cell, probe.kind, entries[0]["took"])


def order_of(trial: Trial, key: tuple[str | int, ...]) -> list[str]:
    """Return the arms in the random order of a pass."""
    arms = list(ARMS)
    random.Random(f"{trial.seed} {key}").shuffle(arms)
    return arms


def to_result(record: Record, key: tuple[str | int, ...]) -> Result:
    """Return a pass of the record. Raises SteleError if the versions of an arm changed during the measurement."""
    entry = record.get(*key)
    assert entry is not None
    runs = {arm: Run.from_dict(run) for arm, run in (entry["runs"] or {}).items()}
    for arm, run in runs.items():
        record.check_versions(arm, run.versions)
    return Result(runs, entry["rounds"], Conditions(**entry["conditions"]), float(entry["took"]))


def announce(state: State, announced: set[tuple[Cell, str]], say: Say) -> bool:
    """Print each verdict against NEW as soon as it is certain. Return whether there is one."""
    for (cell, metric), result in state.judge().items():
        if result.status == "REGRESSED" and (cell, metric.name) not in announced:
            announced.add((cell, metric.name))
            with_ratio = judgement.with_ratio(result, state.series_of(cell, metric))
            say(f"REGRESSED: {cell} {metric.name}, {message_of(metric, with_ratio)}")
    return bool(announced) or state.is_broken()


def progress_message(trial: Trial, record: Record, state: State) -> str:
    """``pass 3: 12 of 20 metrics decided, 11 PASS, 1 REGRESSED; 3.0 min used, at most 17.0 min left``"""
    judgements = state.judge().values()
    decided = [result.status for result in judgements if not result.open]
    counts = "".join(
        f", {decided.count(status)} {status}" for status in judgement.STATUSES if status in decided
    )
    left, number = max(trial.budget - record.spent, 0), max(map(len, state.results.values()))
    return (
        f"pass {number}: {len(decided)} of {len(judgements)} metrics decided{counts}; "
        f"{record.spent / 60:.1f} min used, at most {left / 60:.1f} min left"
    )
