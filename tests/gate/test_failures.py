"""Whether failures of NEW are chance."""

import pytest

from stele.gate import failures, judgement
from stele.gate.trial import ARMS


def round_of(*failing):
    return {"arms": list(ARMS), "failures": dict.fromkeys(failing, "crashed")}


@pytest.mark.parametrize(
    ("rounds", "certain"),
    [
        ([round_of("new", "repeat")] * 2, False),
        ([round_of("new", "repeat")] * 4, True),
        ([round_of("new")] * 4, False),
        ([round_of("new")] * 12, True),
        ([round_of("new"), round_of("old")] * 20, False),
        ([round_of(*ARMS)] * 20, False),
    ],
)
def test_failures_are_certain_only_if_chance_is_excluded(rounds, certain):
    assert (failures.log_evidence(rounds) >= judgement.certainty(2)) == certain


def test_failures_are_counted_by_release():
    rounds = [round_of("new"), round_of("repeat", "old"), round_of("control")]
    assert failures.count(rounds) == (2, 2)
    assert failures.last_message(rounds, new=True) == "crashed"
    assert failures.last_message([round_of("old")], new=True) == ""
