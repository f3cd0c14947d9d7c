"""Statistics of step durations, ratios and accuracies. Pure functions."""

import bisect
import functools
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy

TRIMMED = 0.2  # fraction at each end


class Estimate(NamedTuple):
    """A value with a confidence interval; ``low`` and ``high`` are None if there are too few numbers."""

    low: float | None
    middle: float
    high: float | None


def median(values: Sequence[float], *, confidence: float = 0.95) -> Estimate:
    """Return the median and its binomial interval, which is made of two order statistics.

    The interval describes one launch. Launches differ from each other by more than the steps of one launch do.
    """
    from scipy.special import bdtr  # scipy.stats, which has the same function, needs half a second to import

    ordered, count = sorted(map(float, values)), len(values)
    # element k: the probability that at most k values are below the true median
    outside = bdtr(numpy.arange(count), count, 0.5)
    rank = int((outside <= (1 - confidence) / 2).sum())
    low, high = (ordered[rank - 1], ordered[count - rank]) if rank else (None, None)
    return Estimate(low, float(numpy.median(ordered)), high)


def equivalence_p(values: Sequence[float], reference: Sequence[float], *, margin: float) -> float:
    """Return the p-value of two one-sided tests (TOST): small if the trimmed means differ by less than ``margin``.

    Yuen's test trims a fifth at each end, because a training that is stopped early sometimes ends in a dip, in every
    framework. Sources: Schuirmann, 1987; Yuen, 1974.
    """
    from scipy.stats import ttest_ind

    low, high = numpy.asarray(reference) - margin, numpy.asarray(reference) + margin
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", RuntimeWarning
        )  # equal numbers have no variance, which is not an error
        above = ttest_ind(values, low, equal_var=False, alternative="greater", trim=TRIMMED).pvalue
        below = ttest_ind(values, high, equal_var=False, alternative="less", trim=TRIMMED).pvalue
    return float(max(above, below))


def trimmed_mean(values: Sequence[float]) -> float:
    """Return the mean without a fifth of the values at each end."""
    from scipy.stats import trim_mean

    return float(trim_mean(values, TRIMMED))


def prediction(values: Sequence[float], *, confidence: float = 0.999) -> Estimate:
    """Return the mean and the prediction interval of one more value, from Student's t distribution.

    Raises ValueError for fewer than five values.
    """
    from scipy.stats import t

    if len(values) < 5:
        raise ValueError(f"{len(values)} values are too few for a prediction: at least 5 are needed")
    count, mean = len(values), float(numpy.mean(values))
    reach = float(t.ppf((1 + confidence) / 2, count - 1) * numpy.std(values, ddof=1) * (1 + 1 / count) ** 0.5)
    return Estimate(mean - reach, mean, mean + reach)


# The following functions take differences of pairs, such as log(new) - log(old).


def shift(differences: Sequence[float], *, confidence: float = 0.98) -> Estimate:
    """Return the Hodges-Lehmann estimate (the median of all pairwise means) and a confidence interval of the shift.

    The interval is the union of the Wilcoxon interval, which assumes no distribution, and the Student interval, which
    is wide for few pairs. So neither few pairs nor outliers make it too narrow. Source: Hodges and Lehmann, 1963.
    """
    from scipy.special import stdtrit

    values = numpy.asarray(differences, float)
    first, second = numpy.triu_indices(len(values))
    means = numpy.sort((values[first] + values[second]) / 2)
    rank = signed_rank_depth(len(values), (1 - confidence) / 2)
    reach = float(stdtrit(len(values) - 1, (1 + confidence) / 2) * values.std(ddof=1) / len(values) ** 0.5)
    low = min(means[rank], values.mean() - reach)
    high = max(means[-1 - rank], values.mean() + reach)
    return Estimate(float(low), float(numpy.median(means)), float(high))


@functools.cache
def signed_rank_depth(count: int, tail: float) -> int:
    """Return how many sorted pairwise means to omit at each end, from the exact Wilcoxon signed-rank distribution."""
    ways = numpy.ones(1)  # in how many ways subsets of the ranks 1 to ``rank`` have each sum
    for rank in range(1, count + 1):
        longer = numpy.zeros(len(ways) + rank)
        longer[: len(ways)] += ways
        longer[rank:] += ways
        ways = longer
    return max(int((ways.cumsum() / ways.sum() <= tail).sum()) - 1, 0)


def shift_between(old: Sequence[float], new: Sequence[float], *, confidence: float = 0.98) -> Estimate:
    """Return by how much ``new`` exceeds ``old``, unpaired: the median of all differences, with Welch's interval."""
    from scipy.special import stdtrit

    squares = [float(numpy.var(sample, ddof=1)) / len(sample) for sample in (old, new)]
    parts = sum(square**2 / (len(sample) - 1) for square, sample in zip(squares, (old, new), strict=True))
    middle = float(numpy.median(numpy.subtract.outer(new, old)))
    mean, freedom = float(numpy.mean(new) - numpy.mean(old)), sum(squares) ** 2 / parts if parts else 1.0
    reach = float(stdtrit(freedom, (1 + confidence) / 2)) * sum(squares) ** 0.5
    return Estimate(min(mean - reach, middle), middle, max(mean + reach, middle))


def mann_whitney_p(values: Sequence[float], reference: Sequence[float]) -> float:
    """Return the p-value of the Mann-Whitney test that ``values`` are greater than ``reference``."""
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(values, reference, alternative="greater").pvalue)


def signed_rank_p(differences: Sequence[float]) -> float:
    """Return the p-value of the Wilcoxon signed-rank test that the differences are greater than zero."""
    from scipy.stats import wilcoxon

    values = numpy.asarray(differences, float)
    if not values.any():
        return 1.0
    # "exact" also with ties: the default method of scipy then needs a second for ten pairs
    return float(wilcoxon(values, alternative="greater", method="exact").pvalue)


def t_test_p(differences: Sequence[float]) -> float:
    """Return the p-value of Student's t-test that the mean difference is greater than zero, for screening few pairs."""
    from scipy.special import stdtr

    values = numpy.asarray(differences, float)
    spread = values.std(ddof=1) / len(values) ** 0.5
    if spread == 0:
        return 0.0 if values.mean() > 0 else 1.0
    return float(stdtr(len(values) - 1, -values.mean() / spread))


def holm(p_values: Sequence[float], level: float) -> list[bool]:
    """Return which of several tests are significant with a family-wise error rate of ``level``.

    Source: Holm, 1979. (statsmodels has the same function, but it runs the garbage collector, 0.1 s, at every call.)
    """
    order = numpy.argsort(p_values, kind="stable")
    rejected = numpy.asarray(p_values)[order] <= level / numpy.arange(len(order), 0, -1)
    significant = numpy.empty(len(order), bool)
    significant[order] = numpy.logical_and.accumulate(rejected)  # stop at the first that is not rejected
    return [bool(value) for value in significant]


def pairs_needed(spread: float, shift: float, *, level: float, power: float = 0.9, most: int = 10_000) -> int:
    """Return the number of pairs that detect ``shift`` with ``power`` if ``spread`` is the standard deviation.

    For Student's one-sided paired t-test. Returns ``most`` if it needs more.
    """
    from scipy.special import nctdtr, stdtrit

    effect = shift / max(spread, 1e-9)

    def is_enough(count: int) -> bool:
        miss_rate = nctdtr(count - 1, effect * count**0.5, stdtrit(count - 1, 1 - level))
        return not miss_rate > 1 - power  # it is NaN for a very large effect, which is never missed

    return 2 + bisect.bisect_left(range(2, most), True, key=is_enough)


def spread(differences: Sequence[float]) -> float:
    """Return the standard deviation estimated from the interquartile range, so that outliers do not matter."""
    from scipy.stats import iqr

    return float(iqr(differences, scale="normal"))
