"""Calibration on simulated launches with known noise, and advice on conditions with a known fault."""

import numpy
import pytest

from stele.gate import calibration


@pytest.fixture(autouse=True)
def fewer_trials(monkeypatch):
    monkeypatch.setattr(calibration, "TRIALS", 20)


def estimate(spread, seconds=6.0, count=60):
    values = spread * numpy.random.RandomState(0).standard_normal((count, 4))
    passes = [(tuple(row[:2]), tuple(row[2:])) for row in values]
    return calibration.estimate_sensitivity(passes, [0.02] * count, seconds=seconds, minutes=5)


def test_a_slow_down_of_two_per_cent_is_detected_on_a_quiet_machine():
    sensitivity = estimate(0.01)
    assert sensitivity.spread == pytest.approx(0.01, rel=0.3)
    assert sensitivity.smallest <= 0.02
    assert sensitivity.alarms <= 0.01


@pytest.mark.slow
def test_only_large_slow_downs_are_detected_on_a_noisy_machine():
    sensitivity = estimate(0.3)
    assert sensitivity.smallest is None or sensitivity.smallest >= 0.2
    assert sensitivity.alarms <= 0.02


def test_launches_that_are_too_long_for_the_budget_are_reported():
    sensitivity = estimate(0.01, seconds=100)
    assert sensitivity.smallest is None
    assert "needs 7 minutes to confirm" in calibration.messages("cnn train", sensitivity, minutes=5)[1]
