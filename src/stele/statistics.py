"""Pure functions: numbers in, Estimate out."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy


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
    """The p-value of two one-sided Welch t-tests (TOST): small where the means differ by less than ``margin``.

    Source: Schuirmann, 1987.
    """
    from scipy.stats import ttest_ind

    low, high = numpy.asarray(reference) - margin, numpy.asarray(reference) + margin
    above = ttest_ind(values, low, equal_var=False, alternative="greater").pvalue
    below = ttest_ind(values, high, equal_var=False, alternative="less").pvalue
    return float(max(above, below))


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
