"""The explanation of a gate."""

import json

import pytest

from tests.support import gate_records
from tests.support.reports import EXPLANATION, REGRESSED, report, section


def test_the_explanation_beside_a_gate_names_the_operation_at_the_top(folder):
    record = gate_records.gate(folder / "a.jsonl", verdicts=[REGRESSED])
    (folder / "a.explanation.json").write_text(json.dumps(EXPLANATION))
    whole = report(record)
    assert whole.headline.causes[-1] == (
        "In cnn train, the operation aten::mul changed by +4.00 ms a step: 80% of the change."
    )
    operations, differences = (figure.table for figure in section(whole, "explanation").figures)
    assert operations.title == "cnn train: torch==2.12.0 to torch==2.13.0, 40.0% slower"
    assert operations.rows == [
        ["aten::mul", 1.0, 5.0, 4.0, pytest.approx(80), 2.0, 7.0],
        ["gone", 0.5, None, -0.5, pytest.approx(-10), 1.0, None],
        ["in no operation", None, None, pytest.approx(1.5), pytest.approx(30), None, None],
    ]
    assert differences.rows == [("flags", "threads: 1 → 2")]


def test_an_explanation_alone_is_a_report(folder):
    (folder / "a.json").write_text(json.dumps(EXPLANATION))
    assert [one.anchor for one in report(folder / "a.json").sections] == ["explanation"]
