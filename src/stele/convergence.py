"""Statistics of trainings from several seeds: accuracy, and the time until a target accuracy. Pure functions.

The number of epochs is fixed in advance, and only the accuracy after the last epoch counts: an epoch that reached the
target by luck does not.
"""

from collections.abc import Sequence

import numpy

from stele.statistics import Estimate

CONFIDENCE = 0.95
RESAMPLES = 10_000
FEWEST = 3  # runs of MLPerf's mean, which drops two
MISSES = 1  # runs that may miss the target in MLPerf's mean
LEVEL = 0.05  # of the test against the reference, as in MLPerf's reference convergence points


def mean(values: Sequence[float]) -> Estimate:
    """Return the mean of numbers that are never negative, and Student's interval; no bounds for fewer than two."""
    from scipy.stats import t

    middle = float(numpy.mean(values))
    if len(values) < 2:
        return Estimate(None, middle, None)
    error = float(numpy.std(values, ddof=1)) / len(values) ** 0.5
    reach = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * error
    return Estimate(max(middle - reach, 0.0), middle, middle + reach)


def deviation(values: Sequence[float]) -> Estimate | None:
    """Return the standard deviation and its interval from the chi-squared distribution; None for fewer than two."""
    from scipy.stats import chi2

    if len(values) < 2:
        return None
    freedom, middle = len(values) - 1, float(numpy.std(values, ddof=1))
    high, low = chi2.ppf(((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2), freedom)
    return Estimate(middle * (freedom / low) ** 0.5, middle, middle * (freedom / high) ** 0.5)


def probability(successes: int, count: int) -> Estimate:
    """Return the probability of a success and the exact interval. Source: Clopper and Pearson, 1934."""
    from scipy.stats import binomtest

    interval = binomtest(successes, count).proportion_ci(CONFIDENCE, method="exact")
    return Estimate(float(interval.low), successes / count, float(interval.high))


def expected_time(times: Sequence[float], reached: Sequence[bool]) -> Estimate | None:
    """Return the expected time to the target if a run that misses it is repeated; None if no run reached it.

    ``times`` are the seconds of runs, ``reached`` whether each run reached the target; a run that has no valid time
    may be in ``reached`` alone. A success takes 1 / p runs on average, so the expected time is mean(times) / p. The
    interval is that of the bootstrap distribution of the mean, divided by draws of p. Resampling the successes would
    give no spread if all runs succeeded, so p is drawn from its posterior under Jeffreys' prior.
    """
    from scipy.stats import bootstrap

    successes, count = sum(map(bool, reached)), len(reached)
    if not successes or not len(times):
        return None
    middle = float(numpy.mean(times)) * count / successes
    if len(times) < 2:
        return Estimate(None, middle, None)
    random = numpy.random.default_rng(0)  # equal results give an equal interval
    means = bootstrap((times,), numpy.mean, n_resamples=RESAMPLES, method="percentile", rng=random)
    draws = random.beta(successes + 0.5, count - successes + 0.5, RESAMPLES)
    tail = 50 * (1 - CONFIDENCE)
    low, high = numpy.percentile(means.bootstrap_distribution / draws, (tail, 100 - tail))
    return Estimate(min(float(low), middle), middle, max(float(high), middle))


def mlperf_mean(times: Sequence[float], reached: Sequence[bool]) -> float | None:
    """Return the mean of the times without the fastest and the slowest run.

    A run that misses the target counts as the slowest. None if more than one misses, or for fewer than three runs.
    Source: github.com/mlcommons/training_policies, training_rules.adoc.
    """
    if len(times) < FEWEST or len(times) - sum(reached) > MISSES:
        return None
    ordered = sorted(time if hit else numpy.inf for time, hit in zip(times, reached, strict=True))
    return float(numpy.mean(ordered[1:-1]))


def faster_p(accuracies: Sequence[float], reference: Sequence[float]) -> float | None:
    """Return the p-value of Welch's test that the accuracies after equal epochs exceed those of the reference.

    A small one means that the training converges faster, so its mathematics changed. None for fewer than two values.
    """
    from scipy.stats import ttest_ind

    if min(len(accuracies), len(reference)) < 2:
        return None
    if not (numpy.ptp(accuracies) or numpy.ptp(reference)):  # no variance
        return float(numpy.mean(accuracies) <= numpy.mean(reference))
    return float(ttest_ind(accuracies, reference, equal_var=False, alternative="greater").pvalue)


def reach_p(accuracies: Sequence[float], target: float) -> float | None:
    """Return the probability that one more run reaches the target, from Student's t; None for fewer than two runs."""
    from scipy.stats import t

    if len(accuracies) < 2:
        return None
    count, spread = len(accuracies), float(numpy.std(accuracies, ddof=1))
    distance = target - float(numpy.mean(accuracies))
    if not spread:
        return float(distance <= 0)
    return float(t.sf(distance / (spread * (1 + 1 / count) ** 0.5), count - 1))
