"""The decision procedure: launches of passes in, statuses out. Pure, so that it can be replayed on past launches.

A pass launches OLD twice and NEW twice, in random order. After every pass, e-values say how strong the evidence is
against each hypothesis (``stele.statistics.log_e_values``). They stay valid however often they are looked at.

REGRESSED   it is certain that the metric grew, at the level of the gate, and credible that it grew by more than the
            tolerance
IMPROVED    it is certain that it shrank, at the level of the gate, and by more than the tolerance
PASS        it is certain that it grew by less than twice the tolerance; or by less than the margin, and nothing points
            to growth above the tolerance
INCONCLUSIVE  anything else
"""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from stele import statistics
from stele.statistics import Estimate, Pass

LEVEL = 0.01  # probability that a gate calls any metric REGRESSED, or any IMPROVED, that has not changed
ERROR = 0.01  # probability that a metric passes that grew by its margin
CREDIBLE = 0.2  # probability that a metric that grew by its tolerance counts as having grown by more
SUSPICION = 1 / 3  # p-value; growth above it is not suspected
NEAR = 2.0  # times the tolerance: a metric passes if it is certain that it grew by less
MAX_PASSES = 120  # more than these are not measured; an e-value is valid however many there are

Key = TypeVar("Key")

STATUSES = ("BROKEN", "MISSING", "REGRESSED", "INCONCLUSIVE", "IMPROVED", "PASS")  # the worst first
AGAINST = STATUSES[:3]  # those that say that NEW is worse
EXIT_CODES = {"PASS": 0, "REGRESSED": 1, "BROKEN": 1, "MISSING": 1, "INCONCLUSIVE": 3}  # of ``overall`` statuses
SEVERITY = (0, 3, 2, 1)  # exit codes, the worst last: a verdict against NEW, then a gate that could not be run


@dataclass(frozen=True)
class Series:
    """The launches of one metric, pass by pass, as logarithms."""

    margin: float  # the relative growth that has to be ruled out before the metric passes
    tolerance: float  # the relative growth that is accepted
    noise: float  # the expected relative standard deviation of a launch, before any was measured
    passes: tuple[Pass, ...]

    def after(self, count: int) -> "Series":
        return replace(self, passes=self.passes[:count])


@dataclass(frozen=True)
class Judgement:
    """The status of a metric with its evidence."""

    status: str
    ratio: Estimate | None = None  # new / old, with its interval
    passes: int = 0
    p: float | None = None  # of the change, whatever its direction
    needed: int | None = None  # estimate of how many more passes a verdict takes
    open: bool = False  # whether the next pass can still change the status


class Evidence(NamedTuple):
    """Logarithms of e-values after each pass."""

    slower: list[float]  # that the metric grew
    intolerable: list[float]  # that it grew by more than its tolerance
    faster: list[float]  # that it shrank
    tolerable: list[float]  # that it grew by less than its tolerance
    acceptable: list[float]  # that it grew by less than its margin
    near: list[float]  # that it grew by less than NEAR times its tolerance, or than its margin

    def after(self, count: int) -> "Evidence":
        return Evidence(*(path[:count] for path in self))


def judge(series: Mapping[Key, Series], *, others: int = 0) -> dict[Key, Judgement]:
    """Return a Judgement for each metric. Those that are ``open`` need more passes.

    ``others`` is the number of other tests that share LEVEL with these.
    """
    evidence = {key: weigh(values) for key, values in series.items()}
    slower = thresholds([weighed.slower for weighed in evidence.values()], len(series) + others)
    faster = thresholds([weighed.faster for weighed in evidence.values()], len(series) + others)
    return {key: judge_evidence(evidence[key], values, slower, faster) for key, values in series.items()}


def thresholds(paths: Sequence[Sequence[float]], tests: int) -> list[float]:
    """Return, after each pass, the logarithm of the e-value at which one of so many tests is certain: e-BH.

    ``paths`` are the logarithms of the e-values of the tests that were measured, after each of their passes. The more
    of them are large at the same time, the less each of them needs: see ``certain_together``.
    """
    needed = list[float]()
    for count in range(1, max(map(len, paths), default=0) + 1):
        now = sorted((path[min(count, len(path)) - 1] for path in paths if path), reverse=True)
        enough = [number for number, value in enumerate(now, 1) if value >= certainty(tests) - math.log(number)]
        needed.append(certainty(tests) - math.log(max(enough, default=1)))
    return needed


def certainty(tests: int) -> float:
    """Return the logarithm of the e-value at which one of so many tests is certain, at LEVEL for all together."""
    return math.log(max(tests, 1) / LEVEL)


def certain_together(evidence: Mapping[Key, float], tests: int) -> set[Key]:
    """Return those of so many ``tests`` that are certain, at LEVEL for all together: e-BH.

    ``evidence`` has logarithms of e-values; a test without one has none. If no hypothesis is wrong, the mean of all
    e-values reaches 1 / LEVEL with a probability of at most LEVEL, however often they are looked at; and if k of them
    reach tests / (k LEVEL), so does the mean. If some are wrong, at most a share LEVEL of what is returned is expected
    to be false. Source: Wang and Ramdas, 2022, "False discovery rate control with e-values".
    """
    [needed] = thresholds([[value] for value in evidence.values()], tests) or [0.0]
    return {key for key, value in evidence.items() if value >= needed}


def judge_metric(series: Series, needed: float) -> Judgement:
    """Judge one metric. ``needed`` is the logarithm of the e-value at which a change is certain."""
    always = [needed] * len(series.passes)
    return judge_evidence(weigh(series), series, always, always)


def replay(series: Series, *, tests: int) -> Judgement:
    """Return the Judgement at which a gate with so many tests would have stopped to measure the metric."""
    evidence, needed = weigh(series), certainty(tests)
    result = Judgement("INCONCLUSIVE", open=True)
    for count in range(1, len(series.passes) + 1):
        always = [needed] * count
        result = judge_evidence(evidence.after(count), series.after(count), always, always)
        if not result.open:
            break
    return result


def judge_evidence(evidence: Evidence, series: Series, slower: Sequence[float], faster: Sequence[float]) -> Judgement:
    """Judge one metric. It is certain that it grew, or shrank, where its evidence reaches these after the same pass."""
    if not series.passes:
        return Judgement("INCONCLUSIVE", open=True)
    count, tolerance, middle = len(series.passes), math.log1p(series.tolerance), middle_of(series)
    p = min(math.exp(-max(*evidence.slower, *evidence.faster)), 1.0)
    result = Judgement("INCONCLUSIVE", passes=count, p=p, open=count < MAX_PASSES)
    if is_regression(evidence, slower):
        return replace(result, status="REGRESSED", open=False)
    if middle < -tolerance and any(value >= needed for value, needed in zip(evidence.faster, faster, strict=False)):
        return replace(result, status="IMPROVED", open=False)
    ruled_out = evidence.acceptable[-1] >= -math.log(ERROR) and middle <= tolerance
    if ruled_out and not (is_suspected(evidence) and result.open):
        still_open = result.open and seems_faster(evidence, middle, tolerance)
        return replace(result, status="PASS", open=still_open)
    if evidence.near[-1] >= -math.log(ERROR):
        return replace(result, status="PASS", open=False)
    return replace(result, needed=more_passes(evidence, slower[-1], may_pass=middle <= tolerance))


def weigh(series: Series) -> Evidence:
    opposite = statistics.mirrored(series.passes)
    tolerance, margin = math.log1p(series.tolerance), math.log1p(series.margin)
    near = math.log1p(min(NEAR * series.tolerance, series.margin))
    scales = statistics.noise_scales(series.passes, series.noise)
    values = functools.partial(statistics.log_e_values, noise=series.noise, scales=scales)
    return Evidence(
        slower=values(series.passes),
        intolerable=values(series.passes, shift=tolerance),
        faster=values(opposite),
        tolerable=values(opposite, shift=-tolerance),
        acceptable=values(opposite, shift=-margin),
        near=values(opposite, shift=-near),
    )


def is_regression(evidence: Evidence, needed: Sequence[float]) -> bool:
    """Return whether after any pass both were certain enough: later passes do not revoke it."""
    both = zip(evidence.slower, evidence.intolerable, needed, strict=False)
    return any(slower >= least and intolerable >= -math.log(CREDIBLE) for slower, intolerable, least in both)


def is_suspected(evidence: Evidence) -> bool:
    """Return whether the metric seems to have grown, perhaps by more than its tolerance."""
    enough = -math.log(SUSPICION)
    return evidence.slower[-1] >= enough and evidence.tolerable[-1] < enough


def seems_faster(evidence: Evidence, middle: float, tolerance: float) -> bool:
    """Return whether more passes may prove that the metric improved."""
    return middle < -tolerance and evidence.faster[-1] >= -math.log(SUSPICION)


def middle_of(series: Series) -> float:
    """Return the Hodges-Lehmann estimate of log(new / old)."""
    return statistics.hodges_lehmann(statistics.differences(series.passes))


def more_passes(evidence: Evidence, needed: float, *, may_pass: bool) -> int | None:
    """Estimate how many more passes a verdict takes if the evidence grows as it did; None if it does not grow.

    ``may_pass``: the estimate is at most the tolerance. Otherwise, growth by NEAR tolerances has to be ruled out.
    """
    goals = ((evidence.slower, needed), (evidence.intolerable, -math.log(CREDIBLE)))
    regressed = [passes_to(path, goal) for path, goal in goals]
    passed = passes_to(evidence.acceptable if may_pass else evidence.near, -math.log(ERROR))
    either = [math.inf if None in regressed else max(count for count in regressed if count is not None)]
    either += [math.inf if passed is None else passed]
    fewest = min(either)
    return None if fewest > MAX_PASSES else max(int(fewest), 1)


def passes_to(path: Sequence[float], goal: float) -> float | None:
    """Return after how many more passes the evidence reaches its goal; None if it does not grow."""
    if path[-1] >= goal:
        return 0
    rate = path[-1] / len(path)
    return math.ceil((goal - path[-1]) / rate) if rate > 0 else None


def with_ratio(judgement: Judgement, series: Series) -> Judgement:
    """Return the Judgement with the ratio new / old and its interval, ERROR on each side."""
    if not series.passes:
        return judgement
    effect = statistics.effect(series.passes, series.noise, level=ERROR)
    return replace(judgement, ratio=to_ratio(effect))


def may_reach(high: float | None, bound: float) -> bool:
    """Return whether an interval with this upper end reaches the bound; an unknown end may."""
    return high is None or not high < bound


def to_ratio(shift: Estimate) -> Estimate:
    """Return a shift of logarithms as a ratio new / old."""
    low, middle, high = (None if value is None else math.exp(value) for value in shift)
    assert middle is not None
    return Estimate(low, middle, high)


def overall(statuses: Sequence[str]) -> str:
    """Return the worst status; PASS if all passed or improved."""
    worst = min(statuses, key=STATUSES.index, default="INCONCLUSIVE")
    return "PASS" if worst == "IMPROVED" else worst


def worst_code(codes: Sequence[int]) -> int:
    """Return the exit code of several gates."""
    return max(codes, key=SEVERITY.index)
