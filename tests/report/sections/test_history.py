"""The lines over releases."""

import json

import pytest

from stele.releases.history import Place
from stele.releases.trend import Curve, Graph
from stele.report.sections import history
from tests.support.releases_of_abacus import CELLS, TAGS
from tests.support.reports import report, section


def test_the_lines_over_releases_are_shown(folder):
    site = folder / "html"
    graph = site / "graphs/branch-jax/recipes.track_step.json"
    graph.parent.mkdir(parents=True)
    graph.write_text(json.dumps([[1, [2.0]], [2, [3.0]]]))
    benchmark = {"name": "recipes.track_step", "params": [["'gru'"]], "unit": "seconds"}
    index = {"tags": {"jax-0.1": 1, "jax-0.2": 2}, "benchmarks": {"recipes.track_step": benchmark}}
    (site / "index.json").write_text(json.dumps(index))
    table = section(report(folder), "history").figures[0].table
    assert table.title == "Duration of a step, gru, jax"
    assert table.head == ["release", "ms"]
    assert table.rows == [("0.1", 2000.0), ("0.2", 3000.0)]


@pytest.fixture
def figure():
    """figure(values, intervals, releases) -> the figure of a line with a value in milliseconds for each release."""

    def figure(values, intervals=None, releases=TAGS, **options):
        line = Curve(list(releases[: len(values)]), [1e-3 * value for value in values])
        graph = Graph("abacus", "step", CELLS[0], "seconds", Place("machine", "3.11"), line)
        return history.figure(history.title_of(graph), graph, releases, intervals or {}, **options)

    return figure


def test_a_line_is_in_the_unit_that_people_read(figure):
    drawn = figure([1.0, 2.5], releases=TAGS[:2])
    assert drawn.table.title == f"Duration of a step, {CELLS[0]}"
    assert drawn.table.head == ["release", "ms"]
    assert drawn.table.rows == [("1.1", 1.0), ("1.2", 2.5)]


def test_releases_of_other_lines_leave_a_gap(figure):
    rows = figure([1.0, 1.0], releases=TAGS).table.rows
    assert [row[0] for row in rows] == [tag.removeprefix("abacus-") for tag in TAGS]
    assert [row[1] for row in rows] == [1.0, 1.0, *[None] * 6]


def test_an_interval_is_in_the_unit_of_its_value(figure):
    drawn = figure([1.0, 1.01], {TAGS[0]: (0.0005, 0.002), TAGS[1]: None}, TAGS[:2])
    assert drawn.table.head[2:] == ["98 % interval, low", "98 % interval, high"]
    assert [row[2:] for row in drawn.table.rows] == [(0.5, 2.0), (None, None)]


def test_levels_and_steps_are_in_the_table(figure):
    drawn = figure([1.0] * 4 + [1.2] * 4, with_steps=True)
    assert drawn.table.head == ["release", "ms", "level", "step"]
    assert [row[2] for row in drawn.table.rows] == pytest.approx([1.0] * 4 + [1.2] * 4)
    assert [row[3] for row in drawn.table.rows] == [*[None] * 4, "+20.0 %", *[None] * 3]


def test_every_column_of_a_line_is_drawn(figure):
    drawn = figure([1.0] * 4 + [1.2] * 4, {TAGS[0]: (0.0009, 0.0011)}, with_steps=True)
    [chart] = drawn.charts
    for number in range(len(drawn.table.head)):
        assert f'"field": "c{number}"' in json.dumps(chart.spec["layer"])
    assert drawn.table.name == "step-gru-train-tuned-abacus"
