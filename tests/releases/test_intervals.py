"""The intervals of the numbers of releases."""

import math

import pytest

from stele.releases import history, intervals, measuring, trend
from tests.support.releases_of_abacus import CELLS, TAGS, record, save


@pytest.fixture
def abacus(add_environment, monkeypatch, tmp_path):
    record(add_environment, monkeypatch, tmp_path)


def test_an_interval_is_saved_and_survives_the_next_number(abacus):
    save(TAGS[1], 0.02, with_interval=True)
    history.save(TAGS[1], history.current_place(), {"step": {"cnn infer tuned": 0.1}})
    assert history.read_intervals(TAGS[1], history.current_place()) == {
        "step": dict.fromkeys(CELLS, (pytest.approx(0.0198), pytest.approx(0.0204)))
    }


def test_a_number_that_is_measured_again_does_not_keep_the_earlier_interval(abacus):
    history.save(TAGS[1], history.current_place(), {"step": {CELLS[0]: 0.03}})
    assert list(history.read_intervals(TAGS[1], history.current_place())["step"]) == [CELLS[1]]


@pytest.mark.parametrize(
    "damaged", [None, 3, [], {"step": 3}, {"step": {"gru": [1]}}, {"step": {"gru": [1, math.inf]}}]
)
def test_damaged_intervals_are_left_out(damaged):
    assert not any(intervals.of_content({intervals.KEY: damaged}).values())


def test_the_interval_of_a_number_is_that_of_the_ratios():
    low, high = measuring.interval([0.0, 0.01, 0.02, 0.03, 0.04], 1.0)
    assert low < 1 < high
    assert measuring.interval([0.1, 0.1, 0.1], 2.0) == pytest.approx((2.0, 2.0))


@pytest.mark.slow
def test_asv_finds_the_same_steps_with_and_without_intervals(abacus):
    """asv weights points by its own intervals, so those of Stele must not be among them."""
    found = [step for graph in trend.graphs(history.publish()) for step in trend.steps(graph.line)]
    for tag in TAGS:
        save(tag, 0.01 if TAGS.index(tag) < 4 else 0.012, with_interval=False)
    assert [step for graph in trend.graphs(history.publish()) for step in trend.steps(graph.line)] == found
    assert {step.release for step in found} == {TAGS[4]}
