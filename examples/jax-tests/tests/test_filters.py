import filters
import jax
import numpy
import pytest
from numpy.testing import assert_allclose

SIGNAL = numpy.random.RandomState(0).standard_normal((2000, 16)).astype("float32")


def test_the_average_ends_where_it_did():
    assert_allclose(filters.smooth(SIGNAL)[-1, :3], [0.035174, 0.093432, -0.001323], rtol=1e-3)


def test_power_is_kept():
    assert filters.spectrum(SIGNAL).sum() == pytest.approx(1_979_391, rel=1e-3)


def test_white_channels_are_uncorrelated(stele_value):
    white = filters.whiten(SIGNAL)
    stele_value("variances", white.var(axis=0))
    assert_allclose(white.T @ white / len(white), numpy.eye(16), atol=1e-4)


@pytest.mark.parametrize("function", [filters.smooth, filters.spectrum, filters.whiten])
def test_speed(benchmark, function):
    benchmark(lambda: jax.block_until_ready(function(SIGNAL)))
