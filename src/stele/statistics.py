"""Statistics of step durations, ratios and accuracies. Pure functions."""

import functools
import itertools
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
import numpy

from stele.schema import about

TRIMMED = 0.2  # fraction at each end


class Estimate(msgspec.Struct, frozen=True):
    """A value with a confidence interval."""

    low: Annotated[float | None, about("lower bound; null if there are too few numbers")]
    middle: Annotated[float, about("the value")]
    high: Annotated[float | None, about("upper bound; null if there are too few numbers")]

    def __iter__(self) -> Iterator[float | None]:
        return iter((self.low, self.middle, self.high))


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


def intercept(values: Mapping[int, float]) -> float:
    """Return the value at 0 of the line that fits best, with each value weighted by its own size."""
    sizes, times = numpy.array(list(values)), numpy.array(list(values.values()))
    return float(numpy.polyfit(sizes, times, 1, w=1 / times)[1])


def equivalence_p(values: Sequence[float], reference: Sequence[float], *, margin: float) -> float:
    """Return the p-value of two one-sided tests (TOST): small if the trimmed means differ by less than ``margin``.

    Yuen's test trims a fifth at each end, because a training that is stopped early sometimes ends in a dip, in every
    framework. Sources: Schuirmann, 1987; Yuen, 1974.
    """
    from scipy.stats import ttest_ind

    low, high = numpy.asarray(reference) - margin, numpy.asarray(reference) + margin
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # equal numbers have no variance, which is not an error
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


def spread(differences: Sequence[float]) -> float:
    """Return the standard deviation estimated from the interquartile range, so that outliers do not matter."""
    from scipy.stats import iqr

    return float(iqr(differences, scale="normal"))


# The following functions take passes. A pass is (values of OLD, values of NEW): logarithms of what launches measured.
Pass = tuple[tuple[float, ...], tuple[float, ...]]
Array = numpy.ndarray[Any, Any]
EFFECTS = (
    0.3,
    0.6,
    1.2,
    2.5,
    5.0,
)  # the sizes of an effect that the e-value looks for, in standard deviations
FARTHEST = 2.0  # standard deviations from the median of a pass; more counts as this, so that outliers decide little
OUTLIER = 3.0  # standard deviations; more counts as this in the estimate of the noise
PRIOR_PASSES = 1  # the weight of the expected noise, in passes


def log_e_values(
    passes: Sequence[Pass], noise: float, *, shift: float = 0.0, scales: Sequence[float] | None = None
) -> list[float]:
    """Return, after each pass, the logarithm of the e-value against "NEW exceeds OLD by at most ``shift``".

    If that is true, the launches of a pass, with ``shift`` removed from NEW's, are exchangeable: each choice of the
    launches that are called NEW's is equally likely. The factor of a pass is the likelihood of the true choice under
    an effect, divided by its mean over all choices. So its expected value is 1, whatever the distribution of the
    launches and the drift between passes, and by Ville's inequality the e-value ever reaches 1 / a with a probability
    of at most a. No correction for several looks is needed. The result is the mean over EFFECTS.
    ``noise`` is the expected standard deviation of a launch; earlier passes replace it. ``scales`` is what
    ``noise_scales`` returns, if it is known already: that of opposite passes is the same.
    Source: Ramdas, Grünwald, Vovk and Shafer, 2023, "Game-theoretic statistics and safe anytime-valid inference".
    """
    deviations = numpy.array(noise_scales(passes, noise) if scales is None else scales)
    factors = numpy.zeros((len(passes), len(EFFECTS)))
    for shape in {(len(old), len(new)) for old, new in passes}:
        places = [place for place, (old, new) in enumerate(passes) if (len(old), len(new)) == shape]
        values = numpy.array([[*passes[place][0], *passes[place][1]] for place in places])
        values[:, shape[0] :] -= shift
        factors[places] = log_factors(values, shape[1], deviations[places])
    path = numpy.logaddexp.reduce(factors.cumsum(0), axis=1) - math.log(len(EFFECTS))
    return [float(value) for value in path]


def log_factors(values: Array, new: int, scales: Array) -> Array:
    """Return the logarithm of the factor of each pass for each of EFFECTS: shape (passes, effects).

    ``values`` has the shape (passes, launches); the last ``new`` launches are NEW's.
    """
    centred = (values - numpy.median(values, axis=1, keepdims=True)) / scales[:, None]
    sums = centred.clip(-FARTHEST, FARTHEST)[:, choices(values.shape[1], new)].sum(2)  # (passes, choices)
    likelihoods = sums[:, None, :] * numpy.array(EFFECTS)[:, None]
    largest = likelihoods.max(2, keepdims=True)
    mean = largest[..., 0] + numpy.log(numpy.exp(likelihoods - largest).mean(2))
    factors: Array = likelihoods[..., -1] - mean  # the last choice is the true one
    return factors


@functools.cache
def choices(count: int, size: int) -> Array:
    """Return all choices of ``size`` of ``count`` indices: shape (choices, size). The last one has the last indices."""
    return numpy.array(list(itertools.combinations(range(count), size)))


def noise_scales(passes: Sequence[Pass], noise: float) -> list[float]:
    """Return the standard deviation of a launch as known before each pass, from equal launches in earlier passes."""
    squares, degrees, scales = 2 * PRIOR_PASSES * noise**2, 2 * PRIOR_PASSES, []
    for arms in passes:
        scales.append(max(math.sqrt(squares / degrees), 1e-9))
        for values in arms:
            mean, most = sum(values) / len(values), (OUTLIER * scales[-1]) ** 2
            squares += sum(min((value - mean) ** 2, most) for value in values)
            degrees += len(values) - 1
    return scales


def differences(passes: Sequence[Pass]) -> list[float]:
    """Return the mean of NEW's values minus the mean of OLD's, for each pass."""
    return [sum(new) / len(new) - sum(old) / len(old) for old, new in passes]


def hodges_lehmann(values: Sequence[float]) -> float:
    """Return the median of all pairwise means. Source: Hodges and Lehmann, 1963."""
    first, second = numpy.triu_indices(len(values))
    return float(numpy.median((numpy.asarray(values)[first] + numpy.asarray(values)[second]) / 2))


def mirrored(passes: Sequence[Pass]) -> list[Pass]:
    """Return the passes with opposite signs, so that "less" becomes "more"."""
    return [(tuple(-value for value in old), tuple(-value for value in new)) for old, new in passes]


def effect(passes: Sequence[Pass], noise: float, *, level: float) -> Estimate:
    """Return by how much NEW exceeds OLD, with the bounds that the e-values do not reject at ``level`` on each side.

    A bound is None while there are too few passes to reject any. The middle is the Hodges-Lehmann estimate.
    """
    middle = hodges_lehmann(differences(passes))
    low = lower_bound(passes, noise, middle, level)
    opposite = lower_bound(mirrored(passes), noise, -middle, level)
    return Estimate(low, middle, None if opposite is None else -opposite)


def lower_bound(passes: Sequence[Pass], noise: float, middle: float, level: float) -> float | None:
    """Return the largest shift below ``middle`` that is rejected, to a thousandth of the distance; None if none is."""

    def is_rejected(shift: float) -> bool:
        return log_e_values(passes, noise, shift=shift)[-1] >= -math.log(level)

    reach = next((reach for reach in (noise * 2.0**power for power in range(16)) if is_rejected(middle - reach)), None)
    if reach is None:
        return None
    rejected, open_end = middle - reach, middle
    for _ in range(10):
        half = (rejected + open_end) / 2
        rejected, open_end = (half, open_end) if is_rejected(half) else (rejected, half)
    return rejected
