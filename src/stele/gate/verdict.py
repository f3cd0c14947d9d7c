"""Verdicts: the status of one metric in one cell, with its evidence and a message; and those of a trial.

A trial has verdicts on time and memory: each metric, launches that failed, and the control. In every pass, OLD is
launched a second time: the control says whether both measurements of OLD agree.
"""

import math
from collections.abc import Sequence

import msgspec
import numpy

from stele import statistics, text
from stele.gate import failures, judgement
from stele.gate.entries import Verdict
from stele.gate.judgement import Judgement, Series
from stele.gate.metrics import ALL, CLOCKS, Metric
from stele.gate.state import State
from stele.gate.trial import NEW_ARMS
from stele.measuring.run import PHASES
from stele.statistics import Estimate, Pass
from stele.subjects import Cell
from stele.text import SIZE, Words

DIFFERS = "The control failed: OLD differs from itself, so the machine changed during the measurement."


def from_judgement(
    cell: tuple[str, str],
    metric: Metric,
    result: Judgement,
    *,
    stopped: bool,
    excluded: Sequence[str] = (),
    needs: float | None = None,
) -> Verdict:
    """Return the Verdict of a Judgement. ``stopped``: the budget ran out. ``excluded``: why passes do not count.

    ``needs`` are the seconds that may still decide it.
    """
    message = message_of(metric, result, stopped=stopped)
    if excluded and result.status == "INCONCLUSIVE":
        passes = result.passes + len(excluded)
        message += f" {len(excluded)} of {passes} passes do not count: {excluded[-1]}. Cool it, or lock its clocks."
    still = needs if result.status == "INCONCLUSIVE" else None
    return Verdict(*cell, metric.name, result.status, message, result.ratio, result.passes, result.p, still)


def seconds_needed(verdicts: Sequence[Verdict]) -> float | None:
    """Return about how many more seconds may decide what is open; None if no budget helps.

    Metrics of the same launches need them once.
    """
    needed: dict[tuple[str, str, str], float] = {}
    kinds = {metric.name: metric.kinds[0] for metric in ALL}
    for verdict in verdicts:
        if verdict.status == "INCONCLUSIVE" and verdict.needs is not None:
            key = (verdict.task, verdict.phase, kinds.get(verdict.metric, verdict.metric))
            needed[key] = max(needed.get(key, 0.0), verdict.needs)
    return sum(needed.values()) if needed else None


def unknown(cell: tuple[str, str], metric: str, message: str) -> Verdict:
    """Return the verdict on a metric without numbers."""
    return Verdict(*cell, metric, "INCONCLUSIVE", message)


def message_of(metric: Metric, result: Judgement, *, stopped: bool = False, unit: str = "pass") -> str:
    """``5.2 % slower in 5 passes, p 0.0004``; or why there is no verdict. ``unit``: what was counted, one of it."""
    if result.ratio is None:
        return f"Nothing was measured{' before the budget ran out' if stopped else ''}."
    words = metric.words
    low, middle, high = result.ratio.low, result.ratio.middle, result.ratio.high
    count, changed = text.counted(result.passes, unit), text.change(middle, words)
    if result.status in ("REGRESSED", "IMPROVED"):
        return f"{changed} in {count}, p {result.p:.2g}"
    margin = f"margin {percent(metric.margin)}"
    if result.status == "PASS" and high is not None:
        if result.p is not None and result.p < judgement.LEVEL and middle > 1:
            changed += f", tolerance {percent(metric.tolerance)}"
        return f"{changed}; {bound(middle, high, words)} ({count}, {margin})"
    if low is None or high is None:
        return f"{changed} in {count}. That is not enough for an interval.{still_needed(result, unit)}"
    interval = f"{change_range(low, high, words)} (98 % interval, {count})"
    if high < 1 + metric.margin and middle > 1 + metric.tolerance:
        perhaps = f"below the margin ({percent(metric.margin)}), but perhaps above the tolerance"
        return f"{changed}, {interval}. This is {perhaps} ({percent(metric.tolerance)}).{still_needed(result, unit)}"
    return f"{interval}. This is not enough evidence at the gate's level ({margin}).{still_needed(result, unit)}"


def still_needed(result: Judgement, unit: str) -> str:
    return "" if result.needed is None else f" Still needed: about {text.counted(result.needed, unit)}."


def percent(fraction: float) -> str:
    return f"{100 * fraction:.3g} %"


def bound(middle: float, high: float, words: Words) -> str:
    """``at most 1.7 %`` if middle and high have the same direction, else ``at most 1.7 % slower``."""
    most, direction = text.change(high, words), text.change(middle, words).partition(" % ")[2]
    if most == "the same":
        return "at worst the same"
    return f"{'at most' if high > 1 else 'at least'} {most.removesuffix(f' {direction}')}"


def change_range(low: float, high: float, words: Words) -> str:
    """``18.6 to 23.5 % slower``, ``2.1 to 3.4 times as long``, or ``1.0 % faster to 2.0 % slower``"""
    first, second = text.change(low, words), text.change(high, words)
    unit = second.partition(" ")[2]
    return second if first == second else f"{first.removesuffix(f' {unit}')} to {second}"


def accuracy_verdict(cell: tuple[str, str], losses: list[float], *, margin: float, looks: Sequence[int]) -> Verdict:
    """Return the verdict on accuracy, from the fraction that NEW lost with each seed.

    PASS if NEW is not inferior by ``margin`` or more. ``looks`` are the numbers of seeds after which it is judged.
    """
    if len(losses) < looks[0]:
        message = f"Only {len(losses)} of {looks[0]} seeds were trained before the budget ran out."
        return Verdict(*cell, "accuracy", "INCONCLUSIVE", message, None, len(losses))
    shift = statistics.shift(losses)
    assert shift.low is not None and shift.high is not None
    low, mean, high = [100 * value for value in (shift.low, float(numpy.mean(losses)), shift.high)]
    message = f"mean accuracy loss {mean:+.2f} points [{low:+.2f} {high:+.2f}] in {len(losses)} seeds"
    # one side of the interval, for two tasks that may be trained, and each of the looks
    sure = statistics.shift(losses, confidence=1 - judgement.LEVEL / len(looks))
    if is_positive(sure) and shift.middle > margin / 2:
        return Verdict(*cell, "accuracy", "REGRESSED", message, None, len(losses))
    if not judgement.may_reach(shift.high, margin):
        message = f"{message}; margin {100 * margin:g} point"
        return Verdict(*cell, "accuracy", "PASS", message, None, len(losses))
    reason = "The seeds differ too much for a verdict." if len(losses) >= looks[-1] else "More seeds are needed."
    return Verdict(*cell, "accuracy", "INCONCLUSIVE", f"{message}. {reason}", None, len(losses))


def is_positive(shift: Estimate) -> bool:
    return shift.low is not None and shift.low > 0


def make_verdicts(state: State, *, stopped: bool) -> list[Verdict]:
    """Return failures first, then a verdict for each metric, then the control."""
    failed = [verdict for cell in state.cells if (verdict := failure_verdict(state, cell)) is not None]
    judgements = state.judge()
    verdicts = [
        metric_verdict(state, cell, metric, judgements[cell, metric], stopped=stopped)
        for cell, metric in state.cells_and_metrics()
        if cell not in [Cell(verdict.task, verdict.phase) for verdict in failed]
    ]
    controls = {cell: verdict for cell in state.cells if (verdict := control_verdict(state, cell)) is not None}
    untrusted = [cell for cell, verdict in controls.items() if verdict.status != "PASS"]
    verdicts = [doubted(verdict) if Cell(verdict.task, verdict.phase) in untrusted else verdict for verdict in verdicts]
    return [*failed, *verdicts, *controls.values()]


def doubted(verdict: Verdict) -> Verdict:
    """Return the verdict on a metric if the machine changed during the measurement: no budget helps."""
    return msgspec.structs.replace(verdict, status="INCONCLUSIVE", needs=None)


def metric_verdict(state: State, cell: Cell, metric: Metric, result: Judgement, *, stopped: bool) -> Verdict:
    """Return the verdict on one metric in one cell. INCONCLUSIVE if its numbers are unknown."""
    if state.is_unknown(cell, metric):
        return unknown(cell, metric.name, missing_number(state, cell, metric))
    results = state.results_of(cell, metric.kinds)
    reasons = [result.excluded for result in results if result.excluded]
    series = state.series_of(cell, metric)
    with_ratio = judgement.with_ratio(result, series)
    needs = state.seconds_needed(cell, metric, result) if result.open and not state.has_ended(cell) else None
    verdict = from_judgement(cell, metric, with_ratio, stopped=stopped, excluded=reasons, needs=needs)
    if verdict.status != "INCONCLUSIVE" or not series.passes:
        return verdict
    runs = next(run for result in results for run in result.runs.values())
    return msgspec.structs.replace(verdict, message=verdict.message + noise_of(metric, series, runs.settings.malloc))


def noise_of(metric: Metric, series: Series, malloc: str) -> str:
    """Return a sentence: how much launches of one release differ, and what reduces that; empty if it is little."""
    squares = [float(numpy.var(values, ddof=1)) for arms in series.passes for values in arms if len(values) > 1]
    spread = math.sqrt(sum(squares) / len(squares)) if squares else 0.0
    if spread < metric.tolerance:
        return ""
    noise = f" Launches of one release differ by {100 * spread:.1f} % (standard deviation)"
    if malloc != "plain" or not set(metric.phases) & set(PHASES):
        return f"{noise}."
    profile = "mmap" if metric.words is SIZE else "steady"
    return f"{noise}; --malloc {profile} may reduce that: stele gate --help says what it hides."


def missing_number(state: State, cell: Cell, metric: Metric) -> str:
    """``NEW reported no host-memory, so it cannot be compared.``"""
    runs = next(result.runs for result in state.results_of(cell, metric.kinds) if result.runs)
    arms = {"NEW" if arm in NEW_ARMS else "OLD" for arm, run in runs.items() if not metric.value(run)}
    what = metric.name if metric in ALL else f"number above zero for {metric.name}"
    return f"{' and '.join(sorted(arms, reverse=True))} reported no {what}, so it cannot be compared."


def failure_verdict(state: State, cell: Cell) -> Verdict | None:
    """Return BROKEN if NEW certainly fails more often than OLD and failed here; INCONCLUSIVE if a pass gave no Run."""
    results = state.results_of(cell)
    rounds = [round_ for result in results for round_ in result.rounds]
    old, new = failures.count(rounds)
    if new and state.is_broken():
        message = f"NEW failed in {new} of {len(rounds) + len(results)} rounds of launches, OLD in {old}: "
        return Verdict(*cell, "all", "BROKEN", message + failures.last_message(rounds, new=True))
    if all(result.runs for result in results):
        return None
    side = "OLD" if old else "NEW"
    message = f"{side}: {failures.last_message(rounds, new=not old)}"
    if old:
        return Verdict(*cell, "all", "INCONCLUSIVE", message)
    message = f"Launches of NEW failed, but too few to exclude chance. {message}"
    return Verdict(*cell, "all", "INCONCLUSIVE", message, needs=sum(result.took for result in results))


def control_verdict(state: State, cell: Cell) -> Verdict | None:
    """Return PASS, or INCONCLUSIVE if OLD certainly differs from itself; None if no step was timed in the cell."""
    clock = next((metric for metric in state.metrics_of(cell) if metric.name in CLOCKS), None)
    passes = [] if clock is None else control_passes(state, cell, clock)
    if clock is None or not passes:
        return None
    paths = [statistics.log_e_values(arms, clock.noise) for arms in (passes, statistics.mirrored(passes))]
    largest = max(max(path) for path in paths)
    ratio = judgement.to_ratio(statistics.effect(passes, clock.noise, level=judgement.ERROR))
    p = min(math.exp(-largest), 1.0)
    if largest >= judgement.certainty(2 * len(state.cells)):
        return Verdict(*cell, "control", "INCONCLUSIVE", DIFFERS, ratio, len(passes), p)
    difference = text.change(ratio.middle)
    message = f"OLD beside OLD: {difference} ({text.counted(len(passes), 'pass')})"
    return Verdict(*cell, "control", "PASS", message, ratio, len(passes), p)


def control_passes(state: State, cell: Cell, clock: Metric) -> list[Pass]:
    """Return what both launches of OLD measured in each pass that counts."""
    counted = [result.runs for result in state.results_of(cell, clock.kinds) if result.runs and not result.excluded]
    values = [clock.values({arm: runs[arm] for arm in ("old", "control")}) for runs in counted]
    return [((arms["old"],), (arms["control"],)) for arms in values if arms is not None]
