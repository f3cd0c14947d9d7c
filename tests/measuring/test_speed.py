"""How much the speed of a machine changes."""

import pytest

from stele.measuring import speed
from stele.measuring.speed import TURNS, Speed


def test_the_speed_of_this_machine_is_measured():
    measured = speed.measure(0.01)
    assert 0 < measured.fast <= measured.slow


def test_a_turn_that_is_slow_now_and_then_is_in_the_slow_speed_alone(monkeypatch):
    durations = iter([1.0, 1.0, 1.0, 2.0, 2.0])
    monkeypatch.setattr(speed, "loop", lambda: TURNS * next(durations))
    clock = iter(range(10))
    monkeypatch.setattr(speed, "perf_counter", lambda: next(clock))
    measured = speed.measure(5)
    assert measured == Speed(pytest.approx(1.0), pytest.approx(2.0))


@pytest.mark.parametrize(("slow", "changes"), [(1.1e-8, False), (1.3e-8, False), (1.4e-8, True)])
def test_a_machine_is_uneven_if_slow_turns_take_a_third_more_than_fast_ones(slow, changes):
    assert Speed(1e-8, slow).changes is changes
