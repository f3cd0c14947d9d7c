"""The pages of the releases: what is drawn, and where. tests/browser opens them in Chromium."""

import math
import re

import pytest

from releases_of_abacus import CELLS, TAGS, record, save, write_site
from stele import __main__ as entry_point
from stele.releases import history, intervals, measuring, trend
from stele.releases.trend import Line
from stele.report import chart
from stele.report import history as pages


@pytest.fixture
def abacus(add_environment, monkeypatch, tmp_path):
    record(add_environment, monkeypatch, tmp_path)


def draw(values, ranges=None, releases=TAGS):
    line = Line(list(releases[: len(values)]), values)
    return chart.chart(line, ranges or {}, releases, shorten=str.upper, describe=str)


def test_an_interval_is_saved_and_survives_the_next_number(abacus):
    save(TAGS[1], 0.02, with_interval=True)
    history.save(TAGS[1], history.current_place(), {"step": {"cnn infer tuned": 0.1}})
    assert history.read_intervals(TAGS[1], history.current_place()) == {
        "step": dict.fromkeys(CELLS, (pytest.approx(0.0198), pytest.approx(0.0204)))
    }


def test_a_number_that_is_measured_again_does_not_keep_the_earlier_interval(abacus):
    history.save(TAGS[1], history.current_place(), {"step": {CELLS[0]: 0.03}})
    assert list(history.read_intervals(TAGS[1], history.current_place())["step"]) == [CELLS[1]]


@pytest.mark.parametrize(
    "damaged", [None, 3, [], {"step": 3}, {"step": {"gru": [1]}}, {"step": {"gru": [1, math.inf]}}]
)
def test_damaged_intervals_are_left_out(damaged):
    assert not any(intervals.of_content({intervals.KEY: damaged}).values())


def test_asv_finds_the_same_steps_with_and_without_intervals(abacus):
    """asv weights points by its own intervals, so those of Stele must not be among them."""
    found = [step for _, line in trend.lines(history.publish()) for step in trend.steps(line)]
    for tag in TAGS:
        save(tag, 0.01 if TAGS.index(tag) < 4 else 0.012, with_interval=False)
    assert [step for _, line in trend.lines(history.publish()) for step in trend.steps(line)] == found
    assert {step.release for step in found} == {TAGS[4]}


def test_the_interval_of_a_number_is_that_of_the_ratios():
    low, high = measuring.interval([0.0, 0.01, 0.02, 0.03, 0.04], 1.0)
    assert low < 1 < high
    assert measuring.interval([0.1, 0.1, 0.1], 2.0) == pytest.approx((2.0, 2.0))


def test_points_are_above_the_releases_and_ordered_by_value():
    points = draw([1.0, 3.0, 2.0]).points
    first, second, third = points
    assert first.x < second.x < third.x
    assert first.y > third.y > second.y
    assert all(chart.LEFT < point.x < chart.WIDTH - chart.RIGHT for point in points)
    assert all(chart.TOP < point.y < chart.HEIGHT - chart.BOTTOM for point in points)


def test_the_axis_holds_the_intervals():
    [point, _] = draw([1.0, 1.01], {TAGS[0]: (0.5, 2.0)}).points
    assert chart.TOP <= point.high < point.y < point.low <= chart.HEIGHT - chart.BOTTOM


def test_releases_of_other_lines_leave_a_gap():
    drawn = draw([1.0, 1.0], releases=TAGS)
    assert [text for _, text in drawn.labels] == [tag.upper() for tag in TAGS]
    assert len(drawn.points) == 2


def test_the_labels_of_many_releases_are_thinned():
    many = [f"abacus-{number}" for number in range(300)]
    drawn = draw([1.0] * 300, releases=many)
    assert len(drawn.labels) <= chart.MAX_LABELS
    assert len(drawn.points) == 300


@pytest.mark.parametrize(
    "values, ticks",
    [
        ([0.0, 100.0], ["0", "50", "100"]),
        ([1000.0, 1001.0], ["1,000.0", "1,000.5", "1,001.0"]),
        ([0.00123, 0.00124], None),
        ([0.0, 0.0], None),
        ([1e12, 1e12], None),
        ([5e-324, 5e-324], None),
    ],
)
def test_ticks_are_round_and_differ(values, ticks):
    texts = [text for _, text in draw(values).ticks]
    assert 1 < len(set(texts)) == len(texts) <= chart.MAX_TICKS + 1
    assert ticks is None or texts == ticks


def test_numbers_have_four_digits():
    assert [pages.number(value) for value in (12345.6, 12.345, 0.0012346, 0.0)] == [
        "12,346",
        "12.35",
        "0.001235",
        "0",
    ]


def test_a_history_without_numbers_says_how_to_measure(monkeypatch, tmp_path):
    monkeypatch.setattr(trend, "all_series", lambda asv: iter(()))
    pages.write(tmp_path, tmp_path)
    assert "stele releases run" in (tmp_path / "index.html").read_text()


def test_names_from_outside_are_escaped(abacus, tmp_path, monkeypatch):
    bad = "<script>alert(1)</script>\u202e"
    series = next(trend.all_series(history.publish()))
    monkeypatch.setattr(
        trend, "all_series", lambda asv: iter([series._replace(framework=bad, cell=bad, unit=bad)])
    )
    pages.write(tmp_path / "site", history.HTML)
    texts = [path.read_text() for path in (tmp_path / "site").iterdir()]
    assert len(texts) == 2
    assert not any("<script" in text or "\u202e" in text for text in texts)


def test_a_page_asks_for_nothing_from_elsewhere(abacus, tmp_path):
    for path in write_site(tmp_path / "site").iterdir():
        text = path.read_text()
        assert re.findall(r"""(?:src|href)="(?!#|data:,|index\.html|abacus-)([^"]*)""", text) == []
        assert "<script" not in text and "http" not in text and "url(" not in text and "@import" not in text


@pytest.mark.parametrize("verb", ["report", "publish"])
def test_the_command_writes_the_site_and_says_where(abacus, tmp_path, capsys, verb):
    assert entry_point.main(["releases", verb, "--site", str(tmp_path / "site")]) == 0
    assert f"site: {tmp_path / 'site' / 'index.html'}" in capsys.readouterr().err
    assert (tmp_path / "site/index.html").exists()
