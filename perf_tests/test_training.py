"""How long does an optimizer step take, and does the network learn what it should?"""

import pytest

from pytest_stele.replay import clock

PHASE = "train"
pytestmark = pytest.mark.benchmark(timer=clock)


def test_training(stele_measure, stele_assert_parity, stele_assert_accuracy, stele_record, stele_assert_baseline):
    runs = stele_measure(PHASE)
    stele_assert_parity(PHASE)
    stele_assert_accuracy(runs)
    stele_record(runs)
    stele_assert_baseline(runs)
