"""The decision rule that the gate had before, as a baseline for the study. Pure.

Six pairs screen: a metric passes if it is neither suspicious nor uncertain. The others are judged on fresh pairs alone,
after 10, 15, 20 and 28 of them, with Wilcoxon's signed-rank test. Holm's correction covers the metrics, Bonferroni's
covers the looks. A difference is log(new) - log(old) of one pair.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy

from stele import statistics
from stele.statistics import Estimate

SCREEN = 6  # pairs
LOOKS = (10, 15, 20, 28)  # numbers of fresh pairs
PAIRS = SCREEN + LOOKS[-1]
LEVEL = 0.01  # of all tests and looks of a gate
SUSPICION = 0.2  # p-value

Array = numpy.ndarray[Any, Any]


@dataclass(frozen=True)
class Judgement:
    status: str
    pairs: int = 0  # that were measured
    open: bool = False  # whether more pairs can still change the status


def judge(series: Mapping[str, Sequence[float]], margins: Mapping[str, float]) -> dict[str, Judgement]:
    """Return a Judgement for each metric, from its differences and its margin."""
    results = {key: judge_screen(values[:SCREEN], margins[key]) for key, values in series.items()}
    candidates = [key for key in series if results[key].open]
    slower, faster = dict.fromkeys(candidates, 1.0), dict.fromkeys(candidates, 1.0)
    for look in LOOKS:
        due = [key for key in candidates if results[key].open and len(series[key]) >= SCREEN + look]
        for key in due:
            fresh = series[key][SCREEN : SCREEN + look]
            slower[key], faster[key] = signed_rank_p(fresh), signed_rank_p([-value for value in fresh])
        worse, better = (dict(zip(p, holm(list(p.values())), strict=True)) for p in (slower, faster))
        for key in due:
            fresh = series[key][SCREEN : SCREEN + look]
            result = judge_look(fresh, margins[key], worse=worse[key], better=better[key])
            if results[key].status == "PASS" and result.status not in ("PASS", "IMPROVED"):
                result = replace(results[key], open=False)  # a later look does not revoke PASS
            results[key] = result
    return results


def judge_screen(values: Sequence[float], margin: float) -> Judgement:
    """Judge the first pairs: PASS or INCONCLUSIVE. PASS stays open if the metric seems faster."""
    shift, relevant = statistics.shift(values), relevance(margin)
    suspicious = t_test_p(values) < SUSPICION and may_reach(shift, relevant)
    if suspicious or may_reach(shift, math.log1p(margin)):
        return Judgement("INCONCLUSIVE", SCREEN, open=True)
    return Judgement("PASS", SCREEN, open=max(values) < 0 and shift.middle < -relevant)


def judge_look(fresh: Sequence[float], margin: float, *, worse: bool, better: bool) -> Judgement:
    """Judge the fresh pairs of a look; ``worse`` and ``better`` say which test is significant."""
    shift, relevant, last = statistics.shift(fresh), relevance(margin), len(fresh) == LOOKS[-1]
    pairs = SCREEN + len(fresh)
    if worse and shift.middle > relevant:
        return Judgement("REGRESSED", pairs)
    if better and shift.middle < -relevant:
        return Judgement("IMPROVED", pairs)
    if not may_reach(shift, math.log1p(margin)) and (last or shift.middle <= relevant):
        return Judgement("PASS", pairs, open=not last and max(fresh) < 0 and shift.middle < -relevant)
    return Judgement("INCONCLUSIVE", pairs, open=not last)


def relevance(margin: float) -> float:
    """Return the smallest relevant shift: 1 %, or a fifth of a margin above 5 %."""
    return math.log1p(max(0.01, margin / 5))


def may_reach(shift: Estimate, bound: float) -> bool:
    return shift.high is None or not shift.high < bound


def signed_rank_p(differences: Sequence[float]) -> float:
    """Return the p-value of the Wilcoxon signed-rank test that the differences are greater than zero.

    scipy.stats.wilcoxon returns the same, but takes twenty times as long.
    """
    from scipy.stats import rankdata

    values = numpy.asarray(differences, float)
    values = values[values != 0]
    total = rankdata(numpy.abs(values))[values > 0].sum()
    return float(signed_rank_ways(len(values))[int(total) :].sum())


@functools.cache
def signed_rank_ways(count: int) -> Array:
    """Return the probability of each sum of the positive ranks."""
    ways = numpy.ones(1)
    for rank in range(1, count + 1):
        longer = numpy.zeros(len(ways) + rank)
        longer[: len(ways)] += ways / 2
        longer[rank:] += ways / 2
        ways = longer
    return ways


def t_test_p(differences: Sequence[float] | Array) -> float:
    """Return the p-value of Student's t-test that the mean difference is greater than zero."""
    from scipy.special import stdtr

    values = numpy.asarray(differences, float)
    spread = values.std(ddof=1) / len(values) ** 0.5
    if spread == 0:
        return 0.0 if values.mean() > 0 else 1.0
    return float(stdtr(len(values) - 1, -values.mean() / spread))


def holm(p_values: Sequence[float], level: float = LEVEL / len(LOOKS)) -> list[bool]:
    """Return which of several tests are significant with a family-wise error rate of ``level``. Source: Holm, 1979."""
    order = numpy.argsort(p_values, kind="stable")
    rejected = numpy.asarray(p_values)[order] <= level / numpy.arange(len(order), 0, -1)
    significant = numpy.empty(len(order), bool)
    significant[order] = numpy.logical_and.accumulate(rejected)  # stop at the first that is not rejected
    return [bool(value) for value in significant]
