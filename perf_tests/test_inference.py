"""How long does a batch take in inference, and are its logits right?"""

import pytest

from pytest_stele.replay import clock

PHASE = "infer"
pytestmark = pytest.mark.benchmark(timer=clock)


def test_inference(stele_measure, stele_assert_parity, stele_record, stele_assert_baseline):
    runs = stele_measure(PHASE)
    stele_assert_parity(PHASE)
    stele_record(runs)
    stele_assert_baseline(runs)
