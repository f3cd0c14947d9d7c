"""Which tricks are measured, with how many epochs."""

import pytest

from stele.time_to_accuracy import ablation
from stele_suite import tasks

TRICKS = {"baseline": 24, "device-augmentation": 24, "label-smoothing": 23, "celu": 20, "ema": 20}


def test_each_trick_is_added_to_those_before_it():
    assert [step.tricks for step in steps_of({"baseline": 24, "a": 24, "b": 23})] == [(), ("a",), ("a", "b")]


def steps_of(tricks, **without):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks.load("cnn"), "TRICKS", {"quick": tricks}, raising=False)
        patch.setattr(tasks.load("cnn"), "WITHOUT", {"torch": without}, raising=False)
        return list(ablation.steps("cnn", "quick", "torch"))


def test_a_trick_is_measured_with_the_epochs_before_it_and_with_its_own():
    steps = steps_of({"baseline": 24, "a": 24, "b": 23, "c": 20})
    assert [(step.before, step.epochs) for step in steps] == [(None, 24), (24, 24), (24, 23), (23, 20)]


def test_a_trick_that_the_framework_lacks_is_left_out_of_the_later_steps():
    steps = steps_of({"baseline": 24, "a": 24, "b": 23}, a="it has no a")
    assert [step.tricks for step in steps] == [(), (), ("b",)]
    assert [step.absent for step in steps] == [None, "it has no a", None]
