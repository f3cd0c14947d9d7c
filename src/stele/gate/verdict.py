"""A verdict: the status of one metric in one cell, with its evidence and a message."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy

from stele import statistics, text
from stele.gate import judgement
from stele.gate.judgement import Judgement
from stele.gate.metrics import ALL, Metric
from stele.statistics import Estimate
from stele.text import Words

WORDS = {
    **dict.fromkeys(("host-memory", "device-memory", "peak-memory", "idle"), text.SIZE),
    "compilations": text.COUNT,
}


class Verdict(NamedTuple):
    task: str
    phase: str  # "train", "infer", or "all"
    metric: str  # or "all"
    status: str
    message: str
    ratio: Estimate | None = None  # new / old
    passes: int = 0
    p: float | None = None
    needs: float | None = None  # seconds, about, that may still decide it; None if no budget helps


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
        message += (
            f" {len(excluded)} of {passes} passes do not count: {excluded[-1]}. Use a machine that is idle."
        )
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
    words = WORDS.get(metric.name, text.DURATION)
    low, middle, high = result.ratio
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
    return (
        f"{interval}. This is not enough evidence at the gate's level ({margin}).{still_needed(result, unit)}"
    )


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


def accuracy_verdict(
    cell: tuple[str, str], losses: list[float], *, margin: float, looks: Sequence[int]
) -> Verdict:
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
    reason = (
        "The seeds differ too much for a verdict." if len(losses) >= looks[-1] else "More seeds are needed."
    )
    return Verdict(*cell, "accuracy", "INCONCLUSIVE", f"{message}. {reason}", None, len(losses))


def is_positive(shift: Estimate) -> bool:
    return shift.low is not None and shift.low > 0
