import itertools

import numpy
import pytest

from stele import statistics
from stele.statistics import Estimate


def test_the_interval_of_the_median_is_the_binomial_one():
    low, middle, high = statistics.median(list(range(1, 101)))
    assert middle == 50.5
    assert (low, high) == (
        40,
        61,
    )  # order statistics for n = 100; Conover, Practical Nonparametric Statistics


def test_the_interval_of_the_median_has_its_coverage():
    rng = numpy.random.RandomState(0)
    hits = [low <= 0 <= high for low, _, high in (statistics.median(rng.standard_normal(31)) for _ in range(400))]
    assert 0.93 < numpy.mean(hits) < 0.99


def test_the_interval_of_few_numbers_is_unknown():
    assert statistics.median([1.0, 2.0, 3.0]) == Estimate(None, 2.0, None)


def test_a_prediction_interval_has_its_coverage():
    rng = numpy.random.RandomState(0)
    hits = []
    for _ in range(1000):
        *values, following = rng.standard_normal(11)
        low, _, high = statistics.prediction(values, confidence=0.9)
        hits.append(low <= following <= high)
    assert 0.87 < numpy.mean(hits) < 0.93


def test_a_prediction_from_four_values_is_an_error():
    with pytest.raises(ValueError, match="too few"):
        statistics.prediction([1.0, 1.0, 1.0, 1.0])


@pytest.mark.slow
def test_equivalence_is_found_for_equal_distributions_and_not_at_the_margin():
    rng = numpy.random.RandomState(0)
    counts = dict.fromkeys((0.0, 2.0), 0)
    for _ in range(300):
        reference = rng.standard_normal(10)
        for shift in counts:
            counts[shift] += statistics.equivalence_p(shift + rng.standard_normal(5), reference, margin=2.0) < 0.05
    assert counts[0.0] > 0.7 * 300
    assert counts[2.0] < 0.1 * 300


PASS = ((0.0, 0.01), (0.1, 0.11))


def test_an_e_value_grows_by_at_most_the_number_of_choices_in_each_pass():
    path = statistics.log_e_values([PASS] * 4, 0.01)
    assert path[0] == pytest.approx(numpy.log(6), rel=0.2)  # two of four launches can be NEW's in six ways
    assert all(after - before <= numpy.log(6) for before, after in itertools.pairwise(path))


def test_an_e_value_has_a_mean_of_one_over_all_choices():
    """That is the property on which its error rate rests, for any values."""
    values = (0.0, 0.3, 1.7, -2.0)
    factors = []
    for new in statistics.choices(4, 2):
        old = [index for index in range(4) if index not in new]
        arms = tuple(values[index] for index in old), tuple(values[index] for index in new)
        factors.append(numpy.exp(statistics.log_e_values([arms], 0.5)[0]))
    assert numpy.mean(factors) == pytest.approx(1.0)


def test_an_e_value_seldom_becomes_large_if_nothing_changed():
    rng = numpy.random.RandomState(0)
    largest = []
    for _ in range(400):
        drawn = rng.standard_t(2, (30, 4))
        passes = [(tuple(row[:2]), tuple(row[2:])) for row in drawn]
        largest.append(max(statistics.log_e_values(passes, 1.0)))
    assert numpy.mean(numpy.array(largest) > numpy.log(20)) <= 0.05  # Ville's inequality


def test_passes_of_different_sizes_can_be_mixed():
    path = statistics.log_e_values([PASS, ((0.0,), (0.1,)), ((0.0, 0.0), (0.1,))], 0.01)
    assert path == sorted(path)


@pytest.mark.slow
def test_an_effect_has_an_interval_that_contains_the_truth():
    rng = numpy.random.RandomState(0)
    hits = []
    for _ in range(200):
        drawn = 0.01 * rng.standard_normal((8, 4)) + [0, 0, 0.02, 0.02]
        low, middle, high = statistics.effect([(tuple(row[:2]), tuple(row[2:])) for row in drawn], 0.01, level=0.05)
        hits.append(low <= 0.02 <= high)
        assert low < middle < high
    assert numpy.mean(hits) >= 0.9


def test_the_interval_of_too_few_passes_is_unknown():
    assert tuple(statistics.effect([PASS], 0.01, level=0.01)) == (None, pytest.approx(0.1), None)
