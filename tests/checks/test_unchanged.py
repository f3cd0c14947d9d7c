"""The page of gates of unchanged releases: a change that a gate has found has a table of its own."""

import json

import msgspec
import pytest

from checks import unchanged
from stele.measuring import machine


@pytest.fixture
def reports(tmp_path, monkeypatch):
    """Two gates that passed, and one that found a change."""
    monkeypatch.setattr(unchanged, "FOLDER", tmp_path)
    gates = [gate for gate in unchanged.GATES.values() if gate.change is None][:2]
    gates.append(next(gate for gate in unchanged.GATES.values() if gate.change is not None))
    for gate in gates:
        status = "REGRESSED" if gate.change else "PASS"
        verdict = {"phase": "infer", "metric": "step", "status": status, "message": "2.5 % slower"}
        report = {
            "schema": 1,
            "machine": msgspec.to_builtins(machine.facts()),
            "status": status,
            "launches": 24,
            "seconds": 90,
            "verdicts": [verdict],
        }
        (tmp_path / f"{gate.name}.json").write_text(json.dumps(report))
    return list(unchanged.reports())


def test_a_change_that_a_gate_found_is_not_counted(reports):
    first, _, rest = unchanged.markdown(reports).partition("\n")
    assert first.startswith("2 gates without a known change: 2 PASS; median 1.5 minutes. Measured on ")
    without, heading, found = rest.partition("Gates that have found a change. In ")
    assert heading and without.count("| PASS |") == 2 and "REGRESSED" not in without
    assert found.count("| REGRESSED |") == 1 and "infer step: 2.5 % slower" in found
