import numpy
import pytest

from stele import statistics


def test_the_interval_of_the_median_is_that_of_the_binomial():
    low, middle, high = statistics.median(list(range(1, 101)))
    assert middle == 50.5
    assert (low, high) == (
        40,
        61,
    )  # order statistics for n = 100; Conover, Practical Nonparametric Statistics


def test_the_interval_holds_the_true_median_as_often_as_it_says():
    rng = numpy.random.RandomState(0)
    hits = [
        low <= 0 <= high for low, _, high in (statistics.median(rng.standard_normal(31)) for _ in range(400))
    ]
    assert 0.93 < numpy.mean(hits) < 0.99


def test_of_few_numbers_the_interval_is_unknown_and_not_zero():
    assert statistics.median([1.0, 2.0, 3.0]) == (None, 2.0, None)


def test_a_prediction_holds_the_next_value_as_often_as_it_says():
    rng = numpy.random.RandomState(0)
    hits = []
    for _ in range(1000):
        *seen, following = rng.standard_normal(11)
        low, _, high = statistics.prediction(seen, confidence=0.9)
        hits.append(low <= following <= high)
    assert 0.87 < numpy.mean(hits) < 0.93


def test_fewer_than_five_values_predict_nothing():
    with pytest.raises(ValueError, match="too few"):
        statistics.prediction([1.0, 1.0, 1.0, 1.0])


def test_equivalence_is_shown_for_one_distribution_and_not_beyond_the_margin():
    rng = numpy.random.RandomState(0)
    shown = dict.fromkeys((0.0, 2.0), 0)
    for _ in range(300):
        reference = rng.standard_normal(10)
        for shift in shown:
            shown[shift] += (
                statistics.equivalence(shift + rng.standard_normal(5), reference, margin=2.0) < 0.05
            )
    assert shown[0.0] > 0.7 * 300
    assert shown[2.0] < 0.1 * 300
