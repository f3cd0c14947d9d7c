"""Time and memory: measure passes until every metric is decided or the budget is spent.

A pass launches each arm of a cell once: OLD twice and NEW twice, in an order that is drawn from the trial's seed. So a
resumed trial continues in the same order. Two passes are measured at the same time, if there is a core and memory for
each. The cheapest cell comes first, because it is decided soonest. The import is the same in every cell, so it is
judged in the cheapest one.

A launch measures inference and then training of a task, so that both share its start.
"""

import functools
import itertools
import math
import random
from collections.abc import Collection, Sequence

from stele.gate import durations, judgement, steps
from stele.gate.entries import Verdict
from stele.gate.gate import Gate
from stele.gate.launcher import Launcher, parallel_passes, plan_of
from stele.gate.metrics import KINDS, LONG, launch_settings
from stele.gate.state import Probe, Result, Results, State, results_in
from stele.gate.trial import ARMS, Trial
from stele.gate.verdict import make_verdicts, message_of
from stele.measuring import progress
from stele.measuring.conditions import busiest
from stele.measuring.content import NOTHING
from stele.measuring.run import OF_PROGRAMS, PHASES, Run
from stele.subjects import Cell


def measure(gate: Gate, cells: Sequence[Cell], *, share: float = 1.0) -> list[Verdict]:
    """Measure until all is decided or a share of the budget is spent. Launches in the record are not repeated."""
    trial, record = gate.trial, gate.record
    estimate = functools.partial(durations.estimate, trial)
    state = State(cells, trial.metrics, budget=trial.budget, estimate=estimate).read(record)
    announced, warned, is_resumed = set[tuple[Cell, str]](), False, any(state.results.values())
    if is_resumed and announce(gate, state, announced) and trial.fail_fast:
        return make_verdicts(state, stopped=True)
    estimated = is_resumed or durations.announce_timing(gate, state)
    while active := state.open_probes():
        launches, measured_now = record.launches, set[Probe]()
        for planned in active:
            left = share * trial.budget - record.spent
            probe = next_probe(planned, state, left) if planned not in measured_now else None
            if probe is None:
                continue
            if left <= 0:
                return make_verdicts(state, stopped=True)
            probes = state.measured_with(probe)
            measure_next(gate, probes, state.results, decided=set(probes) - set(state.open_probes()))
            measured_now |= set(probes)
            warned = warned or warn_of_load(gate, state.results[probe])
            if announce(gate, state, announced) and trial.fail_fast:
                return make_verdicts(state, stopped=True)
        if record.launches > launches:
            progress.part(durations.TIMING, progress_message(gate, state), runs=True)
            estimated = estimated or durations.announce_timing(gate, state)
    return make_verdicts(state, stopped=False)


def warn_of_load(gate: Gate, results: Sequence[Result]) -> bool:
    """Say that other processes use the machine, and which ones do it now. Return whether they did in the last pass."""
    if not (results and results[-1].conditions.busy):
        return False
    conditions = results[-1].conditions
    names = ", ".join(busiest())
    gate.say(
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


def measure_next(gate: Gate, probes: Sequence[Probe], results: Results, *, decided: Collection[Probe] = ()) -> None:
    """Measure the next passes of probes, which share each launch. Write them to the record, and add them to results.

    Several passes may be measured at the same time. The ``decided`` probes are measured only because the others follow
    them in a launch, so they have few steps.
    """
    trial, record = gate.trial, gate.record
    earlier = [result for probe in probes for result in results[probe]]  # those that need most memory are last
    runs = [result.runs for result in earlier if result.runs]
    busy = bool(earlier) and earlier[-1].conditions.busy
    alone = KINDS[probes[0].kind].trains  # its seeds follow from the number of the pass
    count = 1 if alone else parallel_passes(trial, runs, busy=busy)
    keys = [[probe.key(len(results[probe]) + number) for probe in probes] for number in range(count)]
    # a resumed record may have passes after one that failed
    keys = list(itertools.takewhile(lambda of_pass: not any(record.get(*key) for key in of_pass), keys))
    record.check(NOTHING)
    passes = launcher_of(gate, probes, results, decided).launch([order_of(trial, of_pass[0]) for of_pass in keys])
    # only one pass if a launch failed, and then only of the probes that failed
    pairs = zip(itertools.chain(*keys), itertools.chain(*passes), strict=False)
    record.add({key: entry for key, entry in pairs if entry is not None})
    for probe, entry in zip(probes, passes[0], strict=True):
        if entry is not None and entry["runs"]:
            durations.remember(trial, probe.cell, probe.kind, entry["took"])
        results[probe] += results_in(record, probe, len(results[probe]))


def launcher_of(gate: Gate, probes: Sequence[Probe], results: Results, decided: Collection[Probe]) -> Launcher:
    """Return what launches the next pass of probes of one kind, of which some are ``decided``."""
    trial, name = gate.trial, probes[0].kind
    kind, number = KINDS[name], len(results[probes[0]])
    timed = trial.training if kind.trains else trial.scale
    scale, settings = launch_settings(name, timed, trial.settings, tuned=trial.subject.tuned)
    plans = []
    for probe in probes:
        earlier = starts_of(probe, results)
        count, target = steps.of_next_launch(name, scale, earlier), trial.target_of(probe.cell.task)
        count = min(count, steps.LEAST) if count is not None and probe in decided else count
        limit = steps.limit(trial, most=math.inf if earlier or name != LONG else steps.FIRST_LIMIT)
        plans.append(plan_of(probe.cell, scale, trial.subject, count, kind, target=target, limit=limit))
    return Launcher(trial, tuple(plans), settings, kind, number=number, left=gate.left)


def starts_of(probe: Probe, results: Results) -> list[tuple[dict[str, Run], float]]:
    """Return the Runs of each pass of a probe, and the seconds that a launch took without its steps.

    If a launch measured both phases of a task, each of them has half of these seconds.
    """
    phases = {probe.cell.phase, *PHASES}
    of_task = [results.get(probe._replace(cell=probe.cell._replace(phase=phase)), []) for phase in phases]
    starts = []
    for number, result in enumerate(results[probe]):
        of_pass = [of_probe[number] for of_probe in of_task if number < len(of_probe)]
        shared = [other.runs for other in of_pass if other.conditions == result.conditions]
        if result.runs:
            steps_of_all = sum(sum(run.steps.seconds) for runs in shared for run in runs.values())
            seconds = max(result.conditions.seconds - steps_of_all, 0.0)
            starts.append((result.runs, seconds / len(result.runs) / len(shared)))
    return starts


def order_of(trial: Trial, key: tuple[str | int, ...]) -> list[str]:
    """Return the arms in the random order of a pass."""
    arms = list(ARMS)
    random.Random(f"{trial.seed} {key}").shuffle(arms)
    return arms


def announce(gate: Gate, state: State, announced: set[tuple[Cell, str]]) -> bool:
    """Say each verdict against NEW as soon as it is certain. Return whether there is one."""
    for (cell, metric), result in state.judge().items():
        if result.status == "REGRESSED" and (cell, metric.name) not in announced:
            announced.add((cell, metric.name))
            with_ratio = judgement.with_ratio(result, state.series_of(cell, metric))
            name = cell.task if cell.phase in OF_PROGRAMS else str(cell)
            gate.say(f"REGRESSED: {name} {metric.name}, {message_of(metric, with_ratio)}")
    return bool(announced) or state.is_broken()


def progress_message(gate: Gate, state: State) -> str:
    """``pass 3: 12 of 20 metrics decided; 3.0 min used, about 2.0 min left``"""
    judgements = state.judge().values()
    number, decided = max(map(len, state.results.values())), sum(not result.open for result in judgements)
    return (
        f"pass {number}: {decided} of {len(judgements)} metrics decided; {durations.minutes(gate.record.spent)} used"
        f"{time_left(max(gate.left, 0), state.seconds_to_end())}"
    )


def time_left(left: float, needed: float | None) -> str:
    """Return ``, about 2.0 min left``; at most the ``left`` seconds of the budget, if the end is not ``needed`` yet."""
    if needed is None:
        return f", at most {durations.minutes(left)} left"
    if needed > left:
        return f", about {durations.minutes(needed)} needed, {durations.minutes(left)} of the budget left"
    return f", about {durations.minutes(needed)} left" if needed else ""
