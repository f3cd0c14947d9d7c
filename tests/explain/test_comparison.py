"""Which operations explain the difference between two releases."""

import pytest

from stele.explain import comparison, text
from stele.explain.comparison import Profile


def profiles(*operations, step=0.1, profiled=0.12):
    return [Profile(step, profiled, {name: (seconds, 2.0) for name, seconds in one.items()}) for one in operations]


def test_operations_are_sorted_by_their_contribution_to_the_change():
    old = profiles({"convolution": 0.05, "relu": 0.01, "gone": 0.002})
    new = profiles({"convolution": 0.09, "relu": 0.005, "pool": 0.01}, step=0.14, profiled=0.165)
    found = comparison.compare(old, new)
    assert [one.name for one in found.operations] == ["convolution", "pool", "gone", "relu"]
    assert found.share(found.operations[0].change) == pytest.approx(0.04 / 0.045)
    assert found.rest == pytest.approx(0.045 - (0.04 + 0.01 - 0.005 - 0.002))


def test_the_operation_that_became_faster_is_first_if_the_step_became_faster():
    old, new = (
        profiles({"slow": 0.09, "other": 0.01}),
        profiles({"slow": 0.02, "other": 0.02}, step=0.04, profiled=0.05),
    )
    assert [one.name for one in comparison.compare(old, new).operations] == ["slow", "other"]


def test_medians_over_launches_ignore_an_outlier():
    old = profiles({"a": 0.01}, {"a": 0.01}, {"a": 9.0})
    new = profiles({"a": 0.02}, {"a": 0.02}, {})
    [operation] = comparison.compare(old, new).operations
    assert (operation.old, operation.new) == (0.01, 0.02)


def test_small_operations_are_summed_up_and_the_unexplained_share_is_stated():
    small = {f"small{number}": 1e-5 for number in range(30)}
    found = comparison.compare(profiles({"large": 0.08, **small}), profiles({"large": 0.1, **small}, profiled=0.145))
    lines = text.lines("cnn train: old to new", found)
    assert any(line.startswith("large") and "80%" in line for line in lines)
    assert any(line.startswith("30 others") for line in lines)
    assert lines[-1] == "20% of the change, +5.00 ms, is in no operation that the profilers show."


def test_equal_steps_have_nothing_to_explain():
    found = comparison.compare(profiles({"a": 0.01}), profiles({"a": 0.01}))
    assert found.share(found.rest) is None
    assert text.lines("x", found)[-1].startswith("The steps take about equally long under the profilers")


def test_the_name_of_a_bulk_is_shortened():
    found = comparison.compare(profiles({"a," * 80: 0.01}), profiles({"a," * 80: 0.02}))
    assert max(len(line) for line in text.lines("x", found)[2:4]) < 140
