"""How long does a batch take in inference, and are its logits right?"""

import pytest

from fixtures.replay import clock

PHASE = "infer"
pytestmark = pytest.mark.benchmark(timer=clock)


def test_inference(measured, assert_agreement, recorded, assert_baseline, environment):
    runs = measured(PHASE)
    assert_agreement(PHASE)
    recorded(runs)
    assert_baseline(runs)
