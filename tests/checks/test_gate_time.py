import pytest

from checks import gate_time
from stele.measuring.conditions import Conditions
from tests.support.runs import make_run

SECONDS = 12.0


def a_launch():
    lifetime = {"start": 0.2, "waiting": 3.0, "total": 6.2}
    return make_run(lifetime=lifetime, preparation={"data": 0.3, "network": 0.1})


def test_each_second_of_a_launch_without_its_waiting_belongs_to_one_part():
    launch = a_launch()
    parts = gate_time.of_launch(launch)
    assert sum(parts.values()) == pytest.approx(3.2)
    assert parts[gate_time.IMPORT] == 1.25
    assert parts[gate_time.FIRST] == 0.5
    assert parts[gate_time.COUNTED] == pytest.approx(0.33)
    assert parts[gate_time.OTHER] == pytest.approx(0.52)


def test_the_parts_of_a_gate_are_its_time_and_launches_at_the_same_time_count_once():
    conditions = Conditions(seconds=8.0, steal=0.0, foreign=0.0, gpu=None)
    arms = dict.fromkeys(("old", "control"), a_launch())
    entries = [{"key": ["long", "cnn train", n], "runs": arms, "conditions": conditions, "took": 4.0} for n in (0, 1)]
    parts = gate_time.split([*entries, {"key": ["parity", "cnn", "new"], "took": 1.0}], SECONDS)
    assert sum(parts.values()) == pytest.approx(SECONDS)
    assert parts[gate_time.PARITY] == 1.0
    assert parts[gate_time.BEFORE] == 3.0
    assert parts[gate_time.IMPORT] == pytest.approx(2 * 1.25)
    assert parts[gate_time.WAITING] == pytest.approx(2 * (4.0 - 3.2))
