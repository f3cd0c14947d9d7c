"""The first steps."""

from tests.support import gate_records
from tests.support.reports import REGRESSED, report, section


def test_warm_up_has_the_percentiles_of_each_step(folder):
    whole = report(gate_records.gate(folder / "a.jsonl", passes=5, verdicts=[REGRESSED]))
    rows = section(whole, "warm-up").figures[0].table.rows
    first, last = rows[0], rows[23]
    assert first[:2] == [1, "OLD"] and first[5] == 5
    assert first[2] <= first[3] <= first[4] and first[3] > 10 * last[3]
