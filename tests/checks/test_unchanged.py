"""The page of gates of unchanged releases: pairs that were replaced have a table of their own."""

import json

import msgspec
import pytest

from checks import unchanged
from stele.measuring import machine


@pytest.fixture
def reports(tmp_path, monkeypatch):
    """Two gates that passed, and one that found a change."""
    monkeypatch.setattr(unchanged, "FOLDER", tmp_path)
    gates = [*unchanged.UNCHANGED[:2], unchanged.REPLACED[0]]
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
    assert first.startswith("2 of 21 gates: 2 PASS. Median 1.5 minutes. Measured on ")
    without, heading, found = rest.partition("Replaced pairs. In ")
    assert heading and without.count("| PASS |") == 2 and "REGRESSED" not in without
    assert found.count("| REGRESSED |") == 1 and "infer step: 2.5 % slower" in found


def test_a_page_without_measured_gates_says_so():
    assert unchanged.markdown([]).startswith("0 of 21 gates: not measured yet.\n")
