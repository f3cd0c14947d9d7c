"""A recipe that breaks is told its cause: each known one is planted, and each is named."""

import pytest

from small import climbed, golden, variant
from stele import examination, ladder
from stele_worker.causes import CAUSES

PLANTED = [(name, task) for name, cause in CAUSES.items() for task in cause.tasks if task != "resnet50"]
PLANTED += [(name, "resnet50") for name, cause in CAUSES.items() if cause.tasks == ("resnet50",)]


@pytest.mark.parametrize("name, task", PLANTED)
def test_a_planted_cause_is_caught_and_named(name, task):
    cause = CAUSES[name]
    golden(task, cause.phase)
    numbers = variant(task, cause.phase, name)
    first = ladder.broken(climbed(task, cause.phase, numbers))
    assert first is not None
    assert (
        examination.likely(first, numbers, task, "fp32", lambda *asked: variant(task, *reversed(asked)))
        == cause.sentence
    )
