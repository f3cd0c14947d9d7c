"""The whole report."""

import pytest

from stele import schema
from tests.support import gate_records
from tests.support.reports import REGRESSED, ROOT, report, section, stele


def test_a_report_shows_everything_that_was_measured(folder, run):
    whole = report(gate_records.gate(folder / "a.jsonl", verdicts=[REGRESSED]), ROOT / "baselines/ladder.json")
    anchors = [one.anchor for one in whole.sections]
    assert anchors == ["verdicts", "launches", "warm-up", "parity", "memory", "in-force"]
    launches = section(whole, "launches").figures[0].table
    assert launches.head == ["time", "arm", "pass", "counts", "step, ms", "first-step, s", "import, s"]
    assert {row[1] for row in launches.rows} == {"OLD", "OLD, control", "NEW", "NEW, repeat"}
    assert [row[0] for row in launches.rows] == sorted(row[0] for row in launches.rows)
    for one in whole.sections:
        for figure in one.figures:
            assert all(len(row) == len(figure.table.head) for row in figure.table.rows), figure.table.name


@pytest.mark.slow
def test_ten_thousand_runs_are_one_page_of_less_than_two_megabytes(folder, run):
    pytest.importorskip("vl_convert", reason="Install it with: pip install 'pytest-stele[report]'")
    text = schema.document({"run": run})
    for number in range(10_000):
        when = f"2026-01-02T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}+00:00"
        (folder / f"{number:05}.json").write_text(text.replace(run.when, when))
    assert stele(folder, "--html", folder / "page.html") == 0
    assert (folder / "page.html").stat().st_size < 2_000_000
