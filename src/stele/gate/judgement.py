"""The decision procedure: differences of pairs in, statuses out. Pure, so that it can be replayed on past launches.

A difference is log(new) - log(old) of one pair. Six pairs screen: a metric passes if it is neither suspicious nor
uncertain. The remaining metrics are candidates. They are judged on fresh pairs alone, after 10, 15, 20 and 28 of them.
The order inside each pair is random, so Wilcoxon's signed-rank test is exact even if the machine drifts. Holm's
correction covers the candidates, Bonferroni's covers the looks.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy

from stele import statistics
from stele.statistics import Estimate

SCREEN = 6  # pairs
LOOKS = (10, 15, 20, 28)  # numbers of fresh pairs
LEVEL = 0.01  # probability that a gate calls a metric slower, or faster, that has not changed
SUSPICION = 0.2  # p-value
MAX_PAIRS = 1000  # more are never proposed

STATUSES = ("BROKEN", "MISSING", "REGRESSED", "INCONCLUSIVE", "IMPROVED", "PASS")  # the worst first


@dataclass(frozen=True)
class Series:
    """The differences of one metric, in the order in which the pairs were measured."""

    margin: float  # the largest relative increase that passes
    differences: Sequence[float]

    @property
    def relevance(self) -> float:
        """The smallest relevant change: 1 %, or a fifth of a margin above 5 %. A smaller one is not REGRESSED."""
        return max(0.01, self.margin / 5)

    @property
    def screen(self) -> Sequence[float]:
        return self.differences[:SCREEN]

    @property
    def fresh(self) -> Sequence[float]:
        return self.differences[SCREEN:]


@dataclass(frozen=True)
class Judgement:
    """The status of a metric with its evidence."""

    status: str
    ratio: Estimate | None = None  # new / old, with its interval
    pairs: int = 0
    p: float | None = None
    needed: int | None = None  # estimate of how many more pairs a verdict takes
    open: bool = False  # whether the next look can still change the status


def judge(series: Mapping[str, Series]) -> dict[str, Judgement]:
    """Return a Judgement for each metric.

    Those that are ``open`` need more pairs for a verdict, or for IMPROVED instead of PASS. The others are final.
    """
    results = {key: judge_screen(values) for key, values in series.items()}
    candidates = [key for key in series if results[key].open]
    slower, faster = dict.fromkeys(candidates, 1.0), dict.fromkeys(candidates, 1.0)
    for look in LOOKS:
        due = [key for key in candidates if results[key].open and len(series[key].fresh) >= look]
        for key in due:
            fresh = series[key].fresh[:look]
            slower[key], faster[key] = (
                statistics.signed_rank_p(fresh),
                statistics.signed_rank_p([-value for value in fresh]),
            )
        if not due:
            break
        worse, better = significance(slower), significance(faster)
        for key in due:
            p = min(slower[key], faster[key])
            result = judge_look(series[key], look, worse=worse[key], better=better[key], p=p)
            if results[key].status == "PASS" and result.status not in ("PASS", "IMPROVED"):
                result = replace(results[key], open=False)  # a later look does not revoke PASS
            results[key] = result
    return results


def judge_screen(series: Series) -> Judgement:
    """Judge the first pairs: PASS or INCONCLUSIVE. PASS stays open if the metric seems faster."""
    if len(series.screen) < SCREEN:
        return Judgement(
            "INCONCLUSIVE", pairs=len(series.screen), needed=SCREEN - len(series.screen), open=True
        )
    shift = statistics.shift(series.screen)
    relevant = math.log1p(series.relevance)
    slower = statistics.t_test_p(series.screen) < SUSPICION and may_reach(shift.high, relevant)
    if not slower and not may_reach(shift.high, math.log1p(series.margin)):
        return Judgement("PASS", to_ratio(shift), SCREEN, open=seems_faster(series.screen, shift, relevant))
    return Judgement("INCONCLUSIVE", to_ratio(shift), SCREEN, needed=LOOKS[0] - len(series.fresh), open=True)


def judge_look(series: Series, look: int, *, worse: bool, better: bool, p: float) -> Judgement:
    """Judge the first ``look`` fresh pairs; ``worse`` and ``better`` say which test is significant."""
    fresh = series.fresh[:look]
    shift, last = statistics.shift(fresh), look == LOOKS[-1]
    relevant = math.log1p(series.relevance)
    if worse and shift.middle > relevant:
        return Judgement("REGRESSED", to_ratio(shift), look, p)
    if better and shift.middle < -relevant:
        return Judgement("IMPROVED", to_ratio(shift), look, p)
    if not may_reach(shift.high, math.log1p(series.margin)) and (last or shift.middle <= relevant):
        still_open = not last and seems_faster(fresh, shift, relevant)
        return Judgement("PASS", to_ratio(shift), look, p, open=still_open)
    needed = more_pairs(series, look, shift.middle)
    return Judgement("INCONCLUSIVE", to_ratio(shift), look, p, needed, open=not last)


def seems_faster(differences: Sequence[float], shift: Estimate, relevant: float) -> bool:
    """Return whether every pair is faster, so that more pairs may prove it."""
    return max(differences) < 0 and shift.middle < -relevant


def may_reach(high: float | None, bound: float) -> bool:
    """Return whether an interval with this upper end reaches the bound; an unknown end may."""
    return high is None or not high < bound


def significance(p_values: Mapping[str, float]) -> dict[str, bool]:
    """Return which candidates differ, with a family-wise error of LEVEL over all candidates and looks."""
    return dict(zip(p_values, statistics.holm(list(p_values.values()), LEVEL / len(LOOKS)), strict=True))


def more_pairs(series: Series, look: int, middle: float) -> int | None:
    """Estimate how many more pairs a verdict takes, up to the next look at least.

    Below the margin they have to show that it is below; above the margin, that it is slower. None if that takes
    MAX_PAIRS or more, as it does close to the margin.
    """
    spread, margin = float(numpy.std(series.fresh[:look], ddof=1)), math.log1p(series.margin)
    room = margin - max(middle, 0.0) if middle < margin else middle
    next_look = next((later for later in LOOKS if later > look), look + 1)
    total = max(statistics.pairs_needed(spread, room, level=LEVEL), next_look)
    return total - len(series.fresh) if total < MAX_PAIRS else None


def to_ratio(shift: Estimate) -> Estimate:
    """Return a shift of logarithms as a ratio new / old."""
    assert shift.low is not None and shift.high is not None
    return Estimate(math.exp(shift.low), math.exp(shift.middle), math.exp(shift.high))


def overall(statuses: Sequence[str]) -> str:
    """Return the worst status; PASS if all passed or improved."""
    worst = min(statuses, key=STATUSES.index, default="INCONCLUSIVE")
    return "PASS" if worst == "IMPROVED" else worst
