"""How long does an optimiser step take, and does the network learn what it should?"""

import pytest

from fixtures.replay import clock

PHASE = "train"
pytestmark = pytest.mark.benchmark(timer=clock)


def test_training(measured, assert_agreement, assert_accuracy, recorded, environment):
    run = measured(PHASE)
    assert_agreement(PHASE)
    assert_accuracy(run)
    recorded(run)
