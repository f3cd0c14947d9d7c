"""The rungs of parity."""

from tests.support import gate_records
from tests.support.reports import REGRESSED, report, section


def test_a_rung_is_exact_near_its_tolerance_or_different(folder):
    lines = [
        {"rung": rung, "status": status, "message": "why", "error": error, "limit": 1e-5, "where": "conv"}
        for rung, status, error in (
            (1, "agrees", 0.0),
            (2, "agrees", 9e-6),
            (3, "agrees", 1e-7),
            (4, "differs", 1.0),
        )
    ]
    entry = {"key": ["parity", "cnn", "new"], "took": 1.0, "failure": None, "findings": lines}
    path = gate_records.write(folder / "a.jsonl", gate_records.header(), [entry, gate_records.last([REGRESSED])])
    rows = section(report(path), "parity").figures[0].table.rows
    assert [row[2] for row in rows] == ["exact", "near the tolerance", "agrees", "differs"]
