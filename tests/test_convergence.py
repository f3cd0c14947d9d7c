"""Statistics of several seeds, each checked by simulation."""

import numpy
import pytest

from stele import convergence
from stele.statistics import Estimate

SIMULATIONS = 400
TRUE_MEAN, TRUE_DEVIATION = 0.94, 0.0015  # of the accuracies of cifar10-fast


def simulated(count, *, seed=0):
    """Yield samples of so many accuracies."""
    random = numpy.random.default_rng(seed)
    for _ in range(SIMULATIONS):
        yield random.normal(TRUE_MEAN, TRUE_DEVIATION, count)


def coverage(estimates, truth):
    return numpy.mean([estimate.low <= truth <= estimate.high for estimate in estimates])


def test_the_interval_of_the_mean_contains_it_in_95_of_100_cases():
    assert 0.92 < coverage(map(convergence.mean, simulated(10)), TRUE_MEAN) < 0.98


def test_the_interval_of_the_standard_deviation_contains_it_in_95_of_100_cases():
    assert 0.92 < coverage(map(convergence.deviation, simulated(10)), TRUE_DEVIATION) < 0.98


def test_no_bound_of_a_mean_time_is_negative():
    assert convergence.mean([47.0, 48.0, 130.0]).low == 0.0


def test_one_seed_has_a_mean_without_an_interval_and_no_deviation():
    assert convergence.mean([0.94]) == Estimate(None, 0.94, None)
    assert convergence.deviation([0.94]) is None


@pytest.mark.slow
@pytest.mark.parametrize("p", [0.05, 0.5, 0.7, 0.95])
def test_the_interval_of_the_probability_contains_it_in_at_least_95_of_100_cases(p):
    successes = numpy.random.default_rng(1).binomial(10, p, SIMULATIONS)
    estimates = [convergence.probability(int(count), 10) for count in successes]
    assert coverage(estimates, p) >= 0.94


def simulate_time_to_target(p, run_seconds, random):
    """Return the seconds until a run succeeds, each of about ``run_seconds``."""
    seconds = 0.0
    while True:
        seconds += random.normal(run_seconds, 0.02 * run_seconds)
        if random.random() < p:
            return seconds


def test_the_expected_time_is_that_of_runs_that_are_repeated_until_one_reaches_the_target(monkeypatch):
    monkeypatch.setattr(convergence, "RESAMPLES", 2)
    random = numpy.random.default_rng(2)
    truth = numpy.mean([simulate_time_to_target(0.4, 30.0, random) for _ in range(20_000)])
    reached = random.random(20_000) < 0.4
    estimate = convergence.expected_time(random.normal(30.0, 0.6, 20_000), reached)
    assert estimate.middle == pytest.approx(truth, rel=0.03)
    assert truth == pytest.approx(30.0 / 0.4, rel=0.03)


@pytest.mark.parametrize("p", [0.5, 0.8, 0.95])
def test_the_interval_of_the_expected_time_contains_it_in_about_95_of_100_cases(p, monkeypatch):
    """Also if most simulations have no miss: the successes alone would then have no spread."""
    monkeypatch.setattr(convergence, "RESAMPLES", 1000)
    random = numpy.random.default_rng(3)
    samples = [(random.normal(30.0, 0.6, 20), random.random(20) < p) for _ in range(200)]
    estimates = [convergence.expected_time(times, reached) for times, reached in samples if any(reached)]
    assert 0.9 < coverage(estimates, 30.0 / p) <= 1


def test_no_run_that_reaches_the_target_has_no_expected_time():
    assert convergence.expected_time([30.0, 31.0], [False, False]) is None


def test_a_run_without_a_valid_time_counts_for_the_probability_alone():
    estimate = convergence.expected_time([30.0, 30.0], [True, True, False, False])
    assert estimate.middle == 60.0
    assert convergence.expected_time([], [True]) is None


def test_equal_runs_give_an_equal_interval():
    arguments = [30.0, 31.0, 29.0], [True, True, False]
    assert convergence.expected_time(*arguments) == convergence.expected_time(*arguments)


def test_mlperfs_mean_drops_the_fastest_and_the_slowest_run():
    assert convergence.mlperf_mean([1.0, 10.0, 11.0, 12.0, 99.0], [True] * 5) == 11.0


def test_a_run_that_misses_the_target_is_the_slowest_in_mlperfs_mean():
    assert convergence.mlperf_mean([1.0, 10.0, 12.0, 5.0], [True, True, True, False]) == 11.0


def test_two_runs_that_miss_the_target_or_fewer_than_three_runs_have_no_mlperf_mean():
    assert convergence.mlperf_mean([10.0] * 5, [True, True, True, False, False]) is None
    assert convergence.mlperf_mean([10.0, 10.0], [True, True]) is None


def test_mlperfs_mean_is_that_of_the_times_in_a_simulation():
    random = numpy.random.default_rng(4)
    means = [convergence.mlperf_mean(random.normal(30.0, 1.0, 10), [True] * 10) for _ in range(SIMULATIONS)]
    assert numpy.mean(means) == pytest.approx(30.0, abs=0.1)


def test_equal_convergence_is_rejected_in_5_of_100_cases():
    pairs = zip(simulated(10, seed=5), simulated(20, seed=6), strict=True)
    rejected = [convergence.faster_p(*pair) < convergence.LEVEL for pair in pairs]
    assert 0.02 < numpy.mean(rejected) < 0.09


@pytest.mark.slow
def test_faster_convergence_is_rejected_and_slower_convergence_is_not():
    pairs = list(zip(simulated(10, seed=5), simulated(20, seed=6), strict=True))
    faster = [convergence.faster_p(values + 2 * TRUE_DEVIATION, of) < convergence.LEVEL for values, of in pairs]
    slower = [convergence.faster_p(values - 2 * TRUE_DEVIATION, of) < convergence.LEVEL for values, of in pairs]
    assert numpy.mean(faster) > 0.95
    assert not any(slower)


def test_convergence_of_one_run_is_not_judged_and_equal_numbers_are_not_faster():
    assert convergence.faster_p([0.94], [0.93, 0.94]) is None
    assert convergence.faster_p([0.94] * 3, [0.94] * 3) == 1
    assert convergence.faster_p([0.95] * 3, [0.94] * 3) == 0


def test_the_probability_of_reaching_the_target_is_that_of_one_more_run():
    """Over many sets of three seeds, its mean is the share of next runs that reach the target."""
    random, target = numpy.random.default_rng(7), TRUE_MEAN + TRUE_DEVIATION
    sets = random.normal(TRUE_MEAN, TRUE_DEVIATION, (4000, 4))
    predicted = [convergence.reach_p(row[:3], row[:3].mean() + 1.5 * row[:3].std(ddof=1)) for row in sets[:5]]
    assert numpy.ptp(predicted) < 1e-9  # it depends on the distance in standard deviations alone
    hits = sets[:, 3] >= sets[:, :3].mean(1) + 1.5 * sets[:, :3].std(1, ddof=1)
    assert predicted[0] == pytest.approx(hits.mean(), abs=0.02)
    assert convergence.reach_p([0.5, 0.5], target) == 0
    assert convergence.reach_p([0.5], target) is None
