"""What is left of the budget of a gate."""

import dataclasses

import pytest

from stele.gate.gate import Gate
from tests.support.gates import make_trial


class Record:
    def __init__(self, spent):
        self.spent = spent


@pytest.mark.parametrize(
    ("budget", "spent", "left", "is_spent"),
    [
        (60, 0.0, 60.0, False),
        (60, 59.5, 0.5, False),
        (60, 60.0, 0.0, True),
        (60, 75.0, -15.0, True),
        (0, 0.0, 0.0, True),
    ],
)
def test_the_budget_is_what_the_launches_have_not_taken(budget, spent, left, is_spent):
    gate = Gate(dataclasses.replace(make_trial(), budget=budget), Record(spent))
    assert (gate.left, gate.is_spent) == (left, is_spent)


def test_a_launch_during_the_gate_reduces_what_is_left():
    record = Record(10.0)
    gate = Gate(make_trial(), record)
    record.spent += 20.0
    assert gate.left == 30.0
