"""The table of verdicts, and its chart."""

from tests.support import gate_records
from tests.support.reports import REGRESSED, report, section


def test_the_worst_verdict_is_first_and_its_limits_are_ratios(folder):
    path = gate_records.gate(folder / "a.jsonl", verdicts=[gate_records.verdict("gru", "infer"), REGRESSED])
    table = section(report(path), "verdicts").figures[0].table
    assert [row[:3] for row in table.rows] == [["REGRESSED", "cnn train", "step"], ["PASS", "gru infer", "step"]]
    assert table.rows[0][3:6] == [1.25, 1.3, 1.36]
    assert all(limit >= 1 for row in table.rows for limit in row[6:8])


def test_a_verdict_without_a_ratio_has_a_row_and_no_point(folder):
    parity = gate_records.verdict("cnn", "all", "parity", ratio=None, message="equal")
    path = gate_records.gate(folder / "a.jsonl", verdicts=[parity])
    figure = section(report(path), "verdicts").figures[0]
    assert figure.table.rows[0][3:8] == [None] * 5
    assert not figure.charts
