"""Decision rules: what each of them says about the launches of one metric, and after how many launches. Pure.

A rule gives REGRESSED if growth is certain and larger than the tolerance, and PASS if growth by the margin is ruled
out. The metric shares its level with the other tests of a default gate.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy
import previous
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from stele import statistics
from stele.gate import judgement
from stele.gate.judgement import ERROR, LEVEL, Series
from stele.gate.metrics import METRICS, Metric

TESTS = 14  # of a default gate: 13 metrics, and the failures
STEP = METRICS[0]
TOLERANCE, MARGIN = math.log1p(STEP.tolerance), math.log1p(STEP.margin)
FIRST = 8  # passes that are judged first, to save time
LOOKS_OF_PASSES = (9, 11, 15, 20, 28, 40)  # nine passes of three arms are the fewest that reach the level
LOOKS_OF_PAIRS = (10, 15, 20, 28, 40)

Array = numpy.ndarray[Any, Any]  # logarithms, shape (passes, launches); the last launches of a pass are NEW's


class Outcome(NamedTuple):
    status: str
    launches: int


def e_values(values: Array, new: int, metric: Metric = STEP) -> Outcome:
    """Judge as the gate does. ``new`` launches of each pass are NEW's."""
    old = values.shape[1] - new
    passes = tuple((tuple(row[:old]), tuple(row[old:])) for row in values.tolist())
    series = Series(metric.margin, metric.tolerance, metric.noise, passes)
    result = judgement.replay(series.after(FIRST), tests=TESTS)
    if result.open:
        result = judgement.replay(series, tests=TESTS)
    return Outcome(result.status, result.passes * values.shape[1])


def old_rule(values: Array) -> Outcome:
    """Judge as the gate did before. This metric is the only one, which helps the rule: Holm corrects for fewer."""
    differences = (values[:, 1] - values[:, 0])[: previous.PAIRS]
    result = previous.judge({"step": list(differences)}, {"step": STEP.margin})["step"]
    return Outcome(result.status, 2 * result.pairs)


def three_arms(values: Array) -> Outcome:
    """Judge passes of OLD, control and NEW by the signed ranks of all contrasts."""
    share = 1 / len(LOOKS_OF_PASSES)
    return at_looks(values, [(count, share, share) for count in LOOKS_OF_PASSES], contrast_p)


def group_sequential(values: Array) -> Outcome:
    """Judge pairs by Student's t-test, with spending like that of O'Brien and Fleming. Source: Lan and DeMets, 1983."""
    shares = [count / LOOKS_OF_PAIRS[-1] for count in LOOKS_OF_PAIRS]
    spent = [[spending(share, level) / level for share in shares] for level in (LEVEL / TESTS, ERROR)]
    looks = zip(LOOKS_OF_PAIRS, *(numpy.diff(path, prepend=0.0) for path in spent), strict=True)
    return at_looks(values, list(looks), lambda rows: previous.t_test_p(rows[:, 1] - rows[:, 0]))


def spending(share: float, level: float) -> float:
    """Return how much of the level may be spent when this share of the pairs is measured."""
    return float(2 * ndtr(ndtri(level / 2) / math.sqrt(share)))


def at_looks(values: Array, looks: Sequence[tuple[int, float, float]], p_value: Callable[[Array], float]) -> Outcome:
    """Judge after each look: (passes, the share of the level for REGRESSED, that for PASS). NEW is the last arm."""
    arms = values.shape[1]
    without_margin = values - MARGIN * (numpy.arange(arms) == arms - 1)
    for count, regressed, passed in looks:
        rows = values[:count]
        middle = statistics.hodges_lehmann(list(rows[:, -1] - rows[:, :-1].mean(1)))
        if middle > TOLERANCE and p_value(rows) <= regressed * LEVEL / TESTS:
            return Outcome("REGRESSED", arms * count)
        if middle <= TOLERANCE and p_value(-without_margin[:count]) <= passed * ERROR:
            return Outcome("PASS", arms * count)
    return Outcome("INCONCLUSIVE", arms * looks[-1][0])


def contrast_p(rows: Array) -> float:
    """Return the p-value that the last arm exceeds the others, from the signed ranks of all contrasts of all passes.

    The distribution is exact: in each pass, each of the arms is equally likely to be the last one.
    """
    contrasts = rows - rows.mean(1, keepdims=True)
    ranks = rankdata(numpy.abs(contrasts)).reshape(contrasts.shape)
    signed = numpy.rint(2 * numpy.sign(contrasts) * ranks).astype(int)  # twice the rank: ties have half ranks
    ways = numpy.ones(1)
    for ranks_of_pass in signed - signed.min(1, keepdims=True):
        longer = numpy.zeros(len(ways) + ranks_of_pass.max())
        for rank in ranks_of_pass:
            longer[rank : rank + len(ways)] += ways / len(ranks_of_pass)
        ways = longer
    least = int(signed.min(1).sum())
    return float(ways[signed[:, -1].sum() - least :].sum())


class Rule(NamedTuple):
    arms: int  # launches of a pass
    new: int  # of which are NEW's
    judge: Callable[[Array], Outcome]


RULES = {
    "old rule, pairs": Rule(2, 1, old_rule),
    "three arms, signed ranks of contrasts": Rule(3, 1, three_arms),
    "pairs, group-sequential t-test": Rule(2, 1, group_sequential),
    "e-values, 1 + 1 launches": Rule(2, 1, lambda values: e_values(values, 1)),
    "e-values, 2 + 1 launches": Rule(3, 1, lambda values: e_values(values, 1)),
    "e-values, 2 + 2 launches (the gate)": Rule(4, 2, lambda values: e_values(values, 2)),
}
