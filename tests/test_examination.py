"""A recipe that breaks is told its cause: each known one is planted, and each is named."""

import pytest

from small import climbed, golden, variant
from stele.parity import examination, ladder
from stele_worker.causes import CAUSES

PLANTED = [(name, task) for name, cause in CAUSES.items() for task in cause.tasks if task != "resnet50"]
PLANTED += [(name, "resnet50") for name, cause in CAUSES.items() if cause.tasks == ("resnet50",)]


@pytest.mark.parametrize("name, task", PLANTED)
def test_a_planted_cause_is_caught_and_named(name, task):
    cause = CAUSES[name]
    expected = golden(task, cause.phase)
    numbers = variant(task, cause.phase, name)
    assert likely(task, cause.phase, numbers, expected) == cause.message


def test_a_break_that_no_known_cause_explains_names_none():
    expected = golden("cnn", "train")
    numbers = {**expected, "losses": [loss + 1 for loss in expected["losses"]]}
    assert likely("cnn", "train", numbers, expected) is None


def likely(task, phase, numbers, expected):
    first = ladder.first_difference(climbed(task, phase, numbers))
    assert first is not None

    def planted(cause, phase):
        return variant(task, phase, cause)

    return examination.likely(first, numbers, expected, task, "fp32", planted)
