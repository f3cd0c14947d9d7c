"""A verdict: one status for one metric of one cell, with its evidence and a message."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy

from stele import statistics
from stele.gate import judgement
from stele.gate.judgement import Judgement
from stele.statistics import Estimate

GROWTH = {"host-memory": ("more", "less"), "device-memory": ("more", "less")}


class Verdict(NamedTuple):
    task: str
    phase: str  # "train", "infer", or "all"
    metric: str  # or "all"
    status: str
    message: str
    ratio: Estimate | None = None  # new / old
    pairs: int = 0
    p: float | None = None


def of_judgement(
    cell: tuple[str, str], metric: str, found: Judgement, margin: float, *, stopped: bool
) -> Verdict:
    said = message(metric, found, margin, stopped=stopped)
    return Verdict(*cell, metric, found.status, said, found.ratio, found.pairs, found.p)


def message(metric: str, found: Judgement, margin: float, *, stopped: bool) -> str:
    """``5.2 % slower in 10 pairs, p 0.001``, or what keeps it from being told."""
    if found.ratio is None:
        return f"{found.pairs} pairs are too few" + (": raise --budget" if stopped else "")
    words = GROWTH.get(metric, ("slower", "faster"))
    pairs, changed = f"{found.pairs} pairs", change(found.ratio.middle, words)
    if found.status in ("REGRESSED", "IMPROVED"):
        return f"{changed} in {pairs}, p {found.p:.2g}"
    assert found.ratio.low is not None and found.ratio.high is not None
    if found.status == "PASS":
        return f"{changed}, at worst {change(found.ratio.high, words)}, in {pairs}; {100 * margin:.3g} % is allowed"
    said = f"between {change(found.ratio.low, words)} and {change(found.ratio.high, words)} in {pairs}"
    if found.needed is None:
        return f"{said}: too close to {100 * margin:.3g} % to tell"
    return f"{said}: about {found.needed} pairs more would tell" + (", raise --budget" if stopped else "")


def change(ratio: float, words: tuple[str, str]) -> str:
    """``5.2 % slower``"""
    percent = 100 * (ratio - 1)
    if abs(percent) < 0.05:
        return "the same"
    return f"{abs(percent):.1f} % {words[0] if percent > 0 else words[1]}"


def of_accuracy(
    cell: tuple[str, str], losses: list[float], *, margin: float, looks: Sequence[int]
) -> Verdict:
    """From what each seed lost, as fractions: not inferior by more than ``margin``, or inferior; told after so many."""
    if len(losses) < looks[0]:
        said = f"{len(losses)} of {looks[0]} seeds: the time was up, raise --budget"
        return Verdict(*cell, "accuracy", "INCONCLUSIVE", said, None, len(losses))
    shift = statistics.shift(losses)
    assert shift.low is not None and shift.high is not None
    points = [100 * value for value in (shift.low, float(numpy.mean(losses)), shift.high)]
    said = (
        f"{points[1]:+.2f} points lost on average of {len(losses)} seeds, [{points[0]:+.2f} {points[2]:+.2f}]"
    )
    # one side of it, for two tasks that may be trained, and each of the looks
    sure = statistics.shift(losses, confidence=1 - judgement.LEVEL / len(looks))
    if above_zero(sure) and shift.middle > margin / 2:
        return Verdict(*cell, "accuracy", "REGRESSED", said, None, len(losses))
    if not judgement.above(shift.high, margin):
        return Verdict(*cell, "accuracy", "PASS", f"{said}; {100 * margin:g} is allowed", None, len(losses))
    why = "the seeds spread too far" if len(losses) >= looks[-1] else "more would tell, raise --budget"
    return Verdict(*cell, "accuracy", "INCONCLUSIVE", f"{said}: {why}", None, len(losses))


def above_zero(shift: Estimate) -> bool:
    return shift.low is not None and shift.low > 0
