"""The charts of a report."""

import sys

import pytest

from stele.errors import SteleError
from stele.report import build, charts, content, sources
from tests.support import gate_records
from tests.support.reports import parity_alone


def specs(report):
    return [chart.title for section in report.sections for figure in section.figures for chart in figure.charts]


@pytest.mark.parametrize("ratio", [(None, 1.4, None), (None, 1.0, 1.2), None])
def test_a_chart_without_intervals_is_left_out(tmp_path, ratio):
    verdicts = [gate_records.verdict("m.py:model", "train", ratio=ratio)]
    assert "Ratios" not in " ".join(specs(parity_alone(tmp_path / "a.jsonl", *verdicts)))
    verdicts.append(gate_records.verdict("m.py:model", "infer"))
    assert "Ratios" in " ".join(specs(parity_alone(tmp_path / "b.jsonl", *verdicts)))


def test_a_chart_has_no_tick_for_a_threshold_that_no_row_has(tmp_path):
    verdict = gate_records.verdict("m.py:model", "train", metric="control")
    report = parity_alone(tmp_path / "a.jsonl", verdict)
    [chart] = report.sections[0].figures[0].charts
    assert not {6, 7} & set(build.axes(chart.spec))


def test_every_axis_of_every_chart_has_a_number(tmp_path):
    gate_records.gate(tmp_path / "a.jsonl", passes=2, verdicts=[gate_records.verdict()])
    report = build.report(sources.read([tmp_path]))
    figures = [figure for section in report.sections for figure in section.figures if figure.charts]
    assert len(figures) > 5
    for figure in figures:
        for chart in figure.charts:
            for column in build.axes(chart.spec):
                assert any(content.is_number(row[column]) for row in figure.table.rows)


@pytest.mark.slow
def test_a_picture_escapes_names_and_is_equal_for_equal_rows():
    pytest.importorskip("vl_convert", reason="Install it with: pip install 'pytest-stele[report]'")
    spec = charts.bars_of_cells(row=0, across=1, name=2, low=3, middle=4, high=5, title="milliseconds")
    rows = [["cnn", "training", "<script>alert(1)</script>&", 1.0, 1.5, 2.0]]
    picture = charts.to_svg(spec, rows)
    assert "<script" not in picture and "&lt;script&gt;alert(1)" in picture
    assert charts.to_svg(spec, rows) == picture


def test_a_picture_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(SteleError, match=r"pip install 'pytest-stele\[report\]'"):
        charts.to_svg({}, [])
