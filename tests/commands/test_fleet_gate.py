"""``stele fleet gate``."""

import pytest

from stele.commands import fleet_gate
from stele.errors import SteleError
from tests.support.command_lines import parse


def test_the_processors_of_a_cluster_are_not_those_of_the_command(monkeypatch):
    monkeypatch.setattr(fleet_gate.gate.processors, "count", lambda: 2)
    line = ["fleet", "gate", "torch", "jax", "--task=gru", "--threads=8"]
    with pytest.raises(SteleError, match="--threads 8 is too much: this machine has 2 processors"):
        fleet_gate.trial_from(parse(*line))
    assert fleet_gate.trial_from(parse(*line, "--address=auto")).settings.threads == 8
