"""A gate as steps."""

import time

import pytest

from stele.errors import SteleError
from stele.fleet import stepwise

# ---- a gate, one pass at a time


def test_a_gate_waits_until_its_entry_is_taken(tmp_path):
    reached = []

    def gate(emit):
        log = stepwise.Relay(tmp_path / "record.jsonl", {}, [], emit)
        log.add({("long", "cnn train", 0): {"took": 1.0}})
        reached.append("second pass")
        log.add({("long", "cnn train", 1): {"took": 1.0}})
        return {"status": "PASS"}

    steps = stepwise.Steps(gate)
    first = steps.next()
    time.sleep(0.1)
    assert reached == [] and first["entries"][0]["took"] == 1.0
    assert steps.next()["entries"][0]["key"] == ("long", "cnn train", 1)
    assert steps.next() == {"status": "PASS"}
    assert not (tmp_path / "record.jsonl").exists()


def test_an_error_of_a_gate_is_raised_by_its_step():
    def gate(emit):
        raise SteleError("no")

    with pytest.raises(SteleError, match="no"):
        stepwise.Steps(gate).next()
