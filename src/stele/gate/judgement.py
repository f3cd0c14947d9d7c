"""The procedure: differences of pairs in, verdicts out. Pure, so that it can be replayed on launches of the past.

A difference is log(new) - log(old) of one pair. Six pairs screen: a metric that shows neither suspicion nor doubt has
passed. What is left are candidates, confirmed on fresh pairs alone, at 10, 15, 20 and 28 of them. Wilcoxon's test
is exact here whatever drifts, because the order inside each pair is drawn at random; Holm's correction is over the
candidates, Bonferroni's over the looks.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy

from stele import statistics
from stele.statistics import Estimate

SCREEN = 6
LOOKS = (10, 15, 20, 28)
LEVEL = 0.01  # the chance that a gate calls anything slower, or anything faster, that is not
SUSPICION = 0.2
MANY = 1000  # pairs that nobody measures

STATUSES = ("BROKEN", "MISSING", "REGRESSED", "INCONCLUSIVE", "IMPROVED", "PASS")  # the worst first


@dataclass(frozen=True)
class Series:
    """The differences of one metric, in the order in which the pairs were measured."""

    margin: float  # by how much of itself the metric may grow unpunished
    differences: Sequence[float]

    @property
    def relevance(self) -> float:
        """What may be significant and still nobody's concern: 1 %, of a wide margin more."""
        return max(0.01, self.margin / 5)

    @property
    def screen(self) -> Sequence[float]:
        return self.differences[:SCREEN]

    @property
    def fresh(self) -> Sequence[float]:
        return self.differences[SCREEN:]


@dataclass(frozen=True)
class Judgement:
    """The status of a metric, with new / old and its interval, the number of pairs, p, and the pairs still needed."""

    status: str
    ratio: Estimate | None = None
    pairs: int = 0
    p: float | None = None
    needed: int | None = None
    open: bool = False  # whether the next look may still decide it


def judge(series: Mapping[str, Series]) -> dict[str, Judgement]:
    """A Judgement for each metric. Those that are ``open`` want more pairs, to be told or to be told better; the others
    stand."""
    found = {key: screened(one) for key, one in series.items()}
    candidates = [key for key in series if found[key].open]
    slower, faster = dict.fromkeys(candidates, 1.0), dict.fromkeys(candidates, 1.0)
    for look in LOOKS:
        due = [key for key in candidates if found[key].open and len(series[key].fresh) >= look]
        for key in due:
            fresh = series[key].fresh[:look]
            slower[key], faster[key] = (
                statistics.larger(fresh),
                statistics.larger([-value for value in fresh]),
            )
        if not due:
            break
        worse, better = significant(slower), significant(faster)
        for key in due:
            p = min(slower[key], faster[key])
            now = looked(series[key], look, worse=worse[key], better=better[key], p=p)
            if found[key].status == "PASS" and now.status not in ("PASS", "IMPROVED"):
                now = replace(found[key], open=False)  # what has passed stands
            found[key] = now
    return found


def screened(series: Series) -> Judgement:
    """After the first pairs: passed, or open. What is surely no slower has passed, and is open if it seems faster."""
    if len(series.screen) < SCREEN:
        return Judgement(
            "INCONCLUSIVE", pairs=len(series.screen), needed=SCREEN - len(series.screen), open=True
        )
    shift = statistics.shift(series.screen)
    relevant = math.log1p(series.relevance)
    slower = statistics.suspicion(series.screen) < SUSPICION and above(shift.high, relevant)
    if not slower and not above(shift.high, math.log1p(series.margin)):
        return Judgement("PASS", ratio(shift), SCREEN, open=seems_faster(series.screen, shift, relevant))
    return Judgement("INCONCLUSIVE", ratio(shift), SCREEN, needed=LOOKS[0] - len(series.fresh), open=True)


def looked(series: Series, look: int, *, worse: bool, better: bool, p: float) -> Judgement:
    """After so many fresh pairs."""
    fresh = series.fresh[:look]
    shift, last = statistics.shift(fresh), look == LOOKS[-1]
    relevant = math.log1p(series.relevance)
    if worse and shift.middle > relevant:
        return Judgement("REGRESSED", ratio(shift), look, p)
    if better and shift.middle < -relevant:
        return Judgement("IMPROVED", ratio(shift), look, p)
    if not above(shift.high, math.log1p(series.margin)) and (last or shift.middle <= relevant):
        more = not last and seems_faster(fresh, shift, relevant)
        return Judgement("PASS", ratio(shift), look, p, open=more)
    return Judgement("INCONCLUSIVE", ratio(shift), look, p, needed(series, look, shift.middle), open=not last)


def seems_faster(differences: Sequence[float], shift: Estimate, relevant: float) -> bool:
    """Whether more pairs may well show it: each of these does."""
    return max(differences) < 0 and shift.middle < -relevant


def above(value: float | None, bound: float) -> bool:
    return value is None or not value < bound


def significant(p_values: Mapping[str, float]) -> dict[str, bool]:
    """Which candidates differ, all of them and all looks together being wrong with a chance of LEVEL."""
    return dict(zip(p_values, statistics.holm(list(p_values.values()), LEVEL / len(LOOKS)), strict=True))


def needed(series: Series, look: int, middle: float) -> int | None:
    """About how many pairs more it takes, to the next look at least, to be seen below its margin; or where it lies
    above it, to be seen at all. None where it lies at its margin."""
    spread, margin = float(numpy.std(series.fresh[:look], ddof=1)), math.log1p(series.margin)
    room = margin - max(middle, 0.0) if middle < margin else middle
    least = next((later for later in LOOKS if later > look), look + 1)
    wanted = max(statistics.pairs_needed(spread, room, level=LEVEL), least)
    return wanted - len(series.fresh) if wanted < MANY else None


def ratio(shift: Estimate) -> Estimate:
    assert shift.low is not None and shift.high is not None
    return Estimate(math.exp(shift.low), math.exp(shift.middle), math.exp(shift.high))


def whole(words: Sequence[str]) -> str:
    """One status for all: the worst; PASS where all passed or improved."""
    worst = min(words, key=STATUSES.index, default="INCONCLUSIVE")
    return "PASS" if worst == "IMPROVED" else worst
