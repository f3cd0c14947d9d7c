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
    from scipy.stats import quantile_test  # half a second to import: only when numbers are shown

    interval = quantile_test(values, p=0.5).confidence_interval(confidence)
    low, high = (None if numpy.isnan(bound) else float(bound) for bound in interval)
    return Estimate(low, float(numpy.median(values)), high)


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
