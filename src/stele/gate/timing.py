"""Time and memory: measure passes until every metric is decided or the budget is spent.

A pass launches each arm of a cell once: OLD twice and NEW twice, in an order that is drawn from the trial's seed. So a
resumed trial continues in the same order. The cells of a pass start with the cheapest one, because that one is decided
soonest. The import is the same in every cell, so it is judged in the cheapest one.
"""

import random
from collections.abc import Callable, Sequence

from stele.gate import durations, judgement
from stele.gate.record import Entry, Record
from stele.gate.state import Probe, Result, State
from stele.gate.trial import ARMS, Cell, Trial
from stele.gate.verdict import Verdict, message_of
from stele.gate.verdicts import make_verdicts
from stele.measuring.conditions import Conditions
from stele.measuring.run import Run

Say = Callable[[str], object]


def measure_passes(
    trial: Trial, record: Record, cells: list[Cell], say: Say, *, share: float = 1.0
) -> list[Verdict]:
    """Measure until all is decided or a share of the budget is spent. Launches in the record are not repeated."""
    state, number, announced = State(trial, cells), 0, set[tuple[Cell, str]]()
    estimated = durations.announce_timing(trial, record, list(state.results), say)
    while active := state.open_probes():
        launches_before = record.launches
        for probe in active:
            key = probe.kind, str(probe.cell), number
            if trial.budget_spent(record, share) and record.get(*key) is None:
                return make_verdicts(state, stopped=True)
            state.results[probe].append(measure_pass(trial, record, probe, key, state.results[probe]))
            ended = announce(state, announced, say)
            if ended and trial.fail_fast:
                return make_verdicts(state, stopped=True)
        number += 1
        # a pass that is from the record was reported when it was measured
        if record.launches > launches_before:
            say(progress_message(trial, record, state, number))
            if number == 1 and not estimated:
                durations.announce_timing(trial, record, list(state.results), say, measured=1)
    return make_verdicts(state, stopped=False)


def measure_pass(
    trial: Trial, record: Record, probe: Probe, key: tuple[str | int, ...], earlier: Sequence[Result]
) -> Result:
    """Launch each arm once, in random order, or take the launches from the record."""
    arms = list(ARMS)
    random.Random(f"{trial.seed} {key}").shuffle(arms)

    def launch() -> Entry:
        entry = probe.launcher(trial, earlier).launch(arms)
        if entry["runs"]:
            durations.remember(trial, probe.cell, probe.kind, entry["took"])
        return entry

    entry = record.get_or_launch(*key, launch=launch)
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


def progress_message(trial: Trial, record: Record, state: State, number: int) -> str:
    """``pass 3: 12 of 20 metrics decided, 11 PASS, 1 REGRESSED; 3.0 min used, at most 17.0 min left``"""
    judgements = state.judge().values()
    decided = [result.status for result in judgements if not result.open]
    counts = "".join(
        f", {decided.count(status)} {status}" for status in judgement.STATUSES if status in decided
    )
    left = max(trial.budget - record.spent, 0)
    return (
        f"pass {number}: {len(decided)} of {len(judgements)} metrics decided{counts}; "
        f"{record.spent / 60:.1f} min used, at most {left / 60:.1f} min left"
    )
