"""How long does an optimiser step take, and does the network learn what it should?"""

import pytest

from fixtures.replay import clock

PHASE = "train"
pytestmark = pytest.mark.benchmark(timer=clock)


def test_training(measured, assert_agreement, assert_accuracy, recorded, assert_baseline, environment):
    runs = measured(PHASE)
    assert_agreement(PHASE)
    for run in runs:
        assert_accuracy(run)
    recorded(runs)
    assert_baseline(runs)
