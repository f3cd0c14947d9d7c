import numpy
import pytest

from stele import statistics


def test_the_interval_of_the_median_is_the_binomial_one():
    low, middle, high = statistics.median(list(range(1, 101)))
    assert middle == 50.5
    assert (low, high) == (
        40,
        61,
    )  # order statistics for n = 100; Conover, Practical Nonparametric Statistics


def test_the_interval_of_the_median_has_its_coverage():
    rng = numpy.random.RandomState(0)
    hits = [
        low <= 0 <= high for low, _, high in (statistics.median(rng.standard_normal(31)) for _ in range(400))
    ]
    assert 0.93 < numpy.mean(hits) < 0.99


def test_the_interval_of_few_numbers_is_unknown():
    assert statistics.median([1.0, 2.0, 3.0]) == (None, 2.0, None)


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


def test_equivalence_is_found_for_equal_distributions_and_not_at_the_margin():
    rng = numpy.random.RandomState(0)
    counts = dict.fromkeys((0.0, 2.0), 0)
    for _ in range(300):
        reference = rng.standard_normal(10)
        for shift in counts:
            counts[shift] += (
                statistics.equivalence_p(shift + rng.standard_normal(5), reference, margin=2.0) < 0.05
            )
    assert counts[0.0] > 0.7 * 300
    assert counts[2.0] < 0.1 * 300
