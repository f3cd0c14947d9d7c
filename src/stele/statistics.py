"""Pure functions: numbers in, Estimate out."""

import bisect
import functools
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy

TRIMMED = 0.2  # at either end


class Estimate(NamedTuple):
    """A value with the interval that holds it; the interval is None where too few numbers were seen."""

    low: float | None
    middle: float
    high: float | None


def median(values: Sequence[float], *, confidence: float = 0.95) -> Estimate:
    """The median, and between which order statistics it lies with ``confidence`` (the binomial interval).

    The interval speaks for this launch alone: launches differ by more than steps within one do.
    """
    from scipy.special import bdtr  # scipy.stats, which has the same, takes half a second to import

    ordered, count = sorted(map(float, values)), len(values)
    outside = bdtr(
        numpy.arange(count), count, 0.5
    )  # the chance that the median lies below so many of the values
    rank = int((outside <= (1 - confidence) / 2).sum())
    low, high = (ordered[rank - 1], ordered[count - rank]) if rank else (None, None)
    return Estimate(low, float(numpy.median(ordered)), high)


def equivalence(values: Sequence[float], reference: Sequence[float], *, margin: float) -> float:
    """The p-value of two one-sided tests (TOST): small where trimmed means differ by less than ``margin``.

    Yuen's test, which leaves out a fifth at either end: a training that is stopped early ends in a dip now and then,
    whoever computes it. Sources: Schuirmann, 1987; Yuen, 1974.
    """
    from scipy.stats import ttest_ind

    low, high = numpy.asarray(reference) - margin, numpy.asarray(reference) + margin
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # that equal numbers have no spread is no fault
        above = ttest_ind(values, low, equal_var=False, alternative="greater", trim=TRIMMED).pvalue
        below = ttest_ind(values, high, equal_var=False, alternative="less", trim=TRIMMED).pvalue
    return float(max(above, below))


def trimmed_mean(values: Sequence[float]) -> float:
    """The mean without a fifth at either end."""
    from scipy.stats import trim_mean

    return float(trim_mean(values, TRIMMED))


def prediction(values: Sequence[float], *, confidence: float = 0.999) -> Estimate:
    """The mean, and the interval in which one more value of the same kind lies with ``confidence``.

    Student's t for one new observation, from at least five values.
    """
    from scipy.stats import t

    if len(values) < 5:
        raise ValueError(f"{len(values)} values are too few to predict another: take at least 5")
    count, mean = len(values), float(numpy.mean(values))
    reach = float(t.ppf((1 + confidence) / 2, count - 1) * numpy.std(values, ddof=1) * (1 + 1 / count) ** 0.5)
    return Estimate(mean - reach, mean, mean + reach)


# differences of pairs, such as log(new) - log(old)


def shift(differences: Sequence[float], *, confidence: float = 0.98) -> Estimate:
    """Hodges and Lehmann's estimate, the median of all means of two, and an interval that holds the true shift.

    The interval is the wider of Wilcoxon's, which asks for no distribution, and Student's, which six pairs still
    widen: neither few pairs nor outliers make it narrow. Source: Hodges and Lehmann, 1963.
    """
    from scipy.special import stdtrit

    values = numpy.asarray(differences, float)
    first, second = numpy.triu_indices(len(values))
    means = numpy.sort((values[first] + values[second]) / 2)
    rank = signed_rank(len(values), (1 - confidence) / 2)
    reach = float(stdtrit(len(values) - 1, (1 + confidence) / 2) * values.std(ddof=1) / len(values) ** 0.5)
    low = min(means[rank], values.mean() - reach)
    high = max(means[-1 - rank], values.mean() + reach)
    return Estimate(float(low), float(numpy.median(means)), float(high))


@functools.cache
def signed_rank(count: int, tail: float) -> int:
    """How many of the ordered means of two may be left out at an end: Wilcoxon's signed-rank distribution, exactly."""
    ways = numpy.ones(1)  # in how many ways the ranks from 1 to ``rank`` can have each sum
    for rank in range(1, count + 1):
        longer = numpy.zeros(len(ways) + rank)
        longer[: len(ways)] += ways
        longer[rank:] += ways
        ways = longer
    return max(int((ways.cumsum() / ways.sum() <= tail).sum()) - 1, 0)


def between(old: Sequence[float], new: Sequence[float], *, confidence: float = 0.98) -> Estimate:
    """By how much ``new`` lies above ``old``, unpaired: the median of all differences, with Welch's interval."""
    from scipy.special import stdtrit

    squares = [float(numpy.var(sample, ddof=1)) / len(sample) for sample in (old, new)]
    parts = sum(square**2 / (len(sample) - 1) for square, sample in zip(squares, (old, new), strict=True))
    middle = float(numpy.median(numpy.subtract.outer(new, old)))
    mean, freedom = float(numpy.mean(new) - numpy.mean(old)), sum(squares) ** 2 / parts if parts else 1.0
    reach = float(stdtrit(freedom, (1 + confidence) / 2)) * sum(squares) ** 0.5
    return Estimate(min(mean - reach, middle), middle, max(mean + reach, middle))


def higher(values: Sequence[float], others: Sequence[float]) -> float:
    """The p-value of Mann and Whitney's test that ``values`` lie above ``others``."""
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(values, others, alternative="greater").pvalue)


def larger(differences: Sequence[float]) -> float:
    """The p-value of Wilcoxon's signed-rank test that the differences lie above zero."""
    from scipy.stats import wilcoxon

    values = numpy.asarray(differences, float)
    if not values.any():
        return 1.0
    # "exact" even where two are equal in size: what scipy takes otherwise needs a second for ten pairs
    return float(wilcoxon(values, alternative="greater", method="exact").pvalue)


def suspicion(differences: Sequence[float]) -> float:
    """The p-value of Student's t-test that the differences average above zero: for a first look at few pairs."""
    from scipy.special import stdtr

    values = numpy.asarray(differences, float)
    spread = values.std(ddof=1) / len(values) ** 0.5
    if spread == 0:
        return 0.0 if values.mean() > 0 else 1.0
    return float(stdtr(len(values) - 1, -values.mean() / spread))


def holm(p_values: Sequence[float], level: float) -> list[bool]:
    """Which of several tests are significant when all of them together may be wrong with a chance of ``level``.

    Source: Holm, 1979. (statsmodels has the same, and collects garbage, a tenth of a second, at every call.)
    """
    order = numpy.argsort(p_values, kind="stable")
    rejected = numpy.asarray(p_values)[order] <= level / numpy.arange(len(order), 0, -1)
    found = numpy.empty(len(order), bool)
    found[order] = numpy.logical_and.accumulate(rejected)  # the first that is not rejected ends it
    return [bool(significant) for significant in found]


def pairs_needed(spread: float, shift: float, *, level: float, power: float = 0.9, most: int = 10_000) -> int:
    """How many pairs show with ``power`` a shift so large, where differences have the standard deviation ``spread``.

    Of Student's one-sided t-test for pairs; ``most`` where it is more.
    """
    from scipy.special import nctdtr, stdtrit

    effect = shift / max(spread, 1e-9)

    def enough(count: int) -> bool:
        missed = nctdtr(count - 1, effect * count**0.5, stdtrit(count - 1, 1 - level))
        return not missed > 1 - power  # far out it is no number: there is no missing it

    return 2 + bisect.bisect_left(range(2, most), True, key=enough)


def spread(differences: Sequence[float]) -> float:
    """The standard deviation of differences, from their middle half, so that a few outliers do not count."""
    from scipy.stats import iqr

    return float(iqr(differences, scale="normal"))
