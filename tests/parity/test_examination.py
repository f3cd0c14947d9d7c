"""The likely cause of a difference: each known cause is planted, and each is named."""

import pytest

from stele.measuring.settings import Settings
from stele.parity import examination, ladder
from stele_worker.causes import CAUSES
from tests.support.small_tasks import climb, golden, variant

CPU = Settings(device="cpu")
PLANTED = [(name, task) for name, cause in CAUSES.items() for task in cause.tasks if task != "resnet50"]
PLANTED += [(name, "resnet50") for name, cause in CAUSES.items() if cause.tasks == ("resnet50",)]


@pytest.mark.slow
@pytest.mark.parametrize("name, task", PLANTED)
def test_a_planted_cause_is_detected_and_named(name, task):
    cause = CAUSES[name]
    expected = golden(task, cause.phase)
    numbers = variant(task, cause.phase, name)
    assert likely_cause(task, cause.phase, numbers, expected) == cause.message


def test_a_difference_that_no_known_cause_explains_has_no_cause():
    expected = golden("cnn", "train")
    numbers = {**expected, "losses": [loss + 1 for loss in expected["losses"]]}
    assert likely_cause("cnn", "train", numbers, expected) is None


def likely_cause(task, phase, numbers, expected):
    difference = ladder.first_difference(climb(task, phase, numbers))
    assert difference is not None

    def planted_variant(cause, phase):
        return variant(task, phase, cause)

    return examination.likely_cause(difference, numbers, expected, task, CPU, planted_variant)
