"""What a report says of a gate without launches, which charts it leaves out, and how it shows long names."""

import re
from html.parser import HTMLParser

import pytest

import gate_records
from stele.gate import outcome
from stele.gate.verdict import Verdict
from stele.report import build, content, exports, gate, html, sources
from stele.statistics import Estimate

NAME = "n" * 10_000
PARITY = gate_records.verdict("m.py:model", "all", "parity", ratio=None, message="equal to OLD")


def parity_alone(path, *verdicts, took=12.0, **facts):
    """Return the report of a gate of ``--metric parity``."""
    top = gate_records.header(cells=(("m.py:model", "train"),), **facts)
    lines = [
        {"key": ["parity", "m.py:model", arm], "took": took,
         "findings": [{"rung": 3, "status": "agrees", "message": "", "error": 0.0, "limit": 1e-5, "where": None}]}
        for arm in ("old", "new")
    ]  # fmt: skip
    gate_records.write(path, top, [*lines, gate_records.last(verdicts or [PARITY])])
    return build.report(sources.read([path]))


def test_a_gate_that_leaves_something_out_says_so_and_does_not_advise_the_upgrade(tmp_path):
    report = parity_alone(tmp_path / "a.jsonl", metrics={}, model={"spec": "m.py:model"})
    missing = "inference, the time of a step, memory"
    assert report.summary.sentence == (
        "As far as it was judged, the upgrade from torch==2.12.0 to torch==2.13.0 is safe: nothing that was judged "
        f"became worse by more than is allowed, and both compute the same. Not judged: {missing}."
    )
    [remedy] = report.summary.remedies
    assert (
        remedy.text == f"Before you upgrade, judge the rest, too: {missing}. --phase and --metric select it."
    )


@pytest.mark.parametrize(
    ("facts", "missing"),
    [
        ({"cells": [["m", "train"], ["m", "infer"]], "metrics": {"step": 0.05, "host-memory": 0.1}}, []),
        ({"cells": [["m", "infer"]], "metrics": {"latency": 0.05, "peak-memory": 0.1}},
         ["training", "the time of a step"]),
        ({"cells": [["m", "train"], ["m", "infer"]], "metrics": {"step": 0.05}, "parity": False},
         ["whether both compute the same", "memory"]),
    ],
)  # fmt: skip
def test_what_is_not_judged_follows_from_the_options(facts, missing):
    assert outcome.not_judged({"parity": True, "model": {"spec": "m"}, **facts}) == missing


def test_a_gate_of_one_release_with_itself_is_no_upgrade(tmp_path):
    report = parity_alone(tmp_path / "a.jsonl", new="torch==2.12.0")
    assert report.summary.sentence.startswith("OLD and NEW are the same, so this gate checks the machine")
    assert [remedy.text for remedy in report.summary.remedies] == [
        "Name the release that you want to upgrade to as NEW."
    ]


def specs(report):
    return [
        chart.title for section in report.sections for figure in section.figures for chart in figure.charts
    ]


def test_a_gate_of_parity_alone_has_no_launches_and_no_minutes(tmp_path):
    report = parity_alone(tmp_path / "a.jsonl")
    assert report.summary.causes[0] == "The only check passed."
    assert report.facts[0].startswith("No launch was timed. Parity took 24 seconds on Abacus 3000,")
    text = html.render(report)
    assert "0 launches" not in text and "0 minutes" not in text and "1 checks" not in text


@pytest.mark.parametrize(
    ("launches", "seconds", "text"),
    [
        (0, 0.0, "Nothing was measured on "),
        (0, 1.2, "No launch was timed. Parity took 1 second on "),
        (0, 300.0, "No launch was timed. Parity took 5 minutes on "),
        (1, 89.0, "1 launch in 89 seconds on "),
        (154, 1860.0, "154 launches in 31 minutes on "),
    ],
)
def test_what_was_measured_is_counted(launches, seconds, text):
    header = gate_records.header()
    gate = type("Gate", (), {"header": header, "launches": launches, "seconds": seconds, "passes": ()})
    assert build.gate_facts(gate).startswith(text)


def test_several_checks_in_one_launch_are_counted(tmp_path):
    path = gate_records.gate(tmp_path / "a.jsonl", passes=1, verdicts=[PARITY, PARITY])
    assert re.fullmatch(
        r"All 2 checks passed, in \d+ launches of fresh processes\.",
        build.report(sources.read([path])).summary.causes[0],
    )


@pytest.mark.parametrize("ratio", [(None, 1.4, None), (None, 1.0, 1.2), (0.9, None, 1.2), None])
def test_a_chart_without_intervals_is_left_out(tmp_path, ratio):
    verdicts = [gate_records.verdict("m.py:model", "train", ratio=ratio)]
    assert "Ratios" not in " ".join(specs(parity_alone(tmp_path / "a.jsonl", *verdicts)))
    verdicts.append(gate_records.verdict("m.py:model", "infer"))
    assert "Ratios" in " ".join(specs(parity_alone(tmp_path / "b.jsonl", *verdicts)))


@pytest.mark.parametrize(("low", "high"), [(None, None), (None, 1.2), (0.9, None)])
def test_a_ratio_without_an_interval_says_so(low, high):
    verdict = Verdict("m.py:model", "train", "step", "INCONCLUSIVE", "", Estimate(low, 1.0, high))
    assert gate.ratio(verdict) == "1.000, interval not yet known"


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


class Texts(HTMLParser):
    """The texts that a page shows, and its titles."""

    def __init__(self):
        super().__init__()
        self.found, self.titles, self.inside = [], [], []

    def handle_starttag(self, tag, attributes):
        self.inside.append(tag)
        self.titles += [value for name, value in attributes if name == "title"]

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"script", "style"} & set(self.inside[-1:]):
            self.found.append(data.strip())


@pytest.mark.parametrize("name", [NAME, " ".join(["torch==2.13.0"] * 700), f"<b>{NAME}</b>"])
def test_a_long_name_is_shortened_and_the_whole_is_its_title(tmp_path, name):
    cells = [(name, "train")]
    verdicts = [
        gate_records.verdict(
            name, "train", status="INCONCLUSIVE", message=f"{name} is noisy", ratio=(0.9, 1.0, 1.3)
        ),
        gate_records.verdict(name, "all", "parity", ratio=None),
    ]
    path = gate_records.gate(
        tmp_path / "a.jsonl", passes=2, old=name, new=f"{name}2", cells=cells, verdicts=verdicts
    )
    report = build.report(sources.read([path]))
    page = Texts()
    page.feed(html.render(report))
    in_commands = [text for text in page.found if text.startswith("stele ")]
    assert max(map(len, set(page.found) - set(in_commands))) < 1500
    assert any(name in title for title in page.titles)
    assert in_commands  # whole, so that they can be pasted
    for file in exports.to_csv(report):
        (tmp_path / f"{file}.csv").write_text("")  # its name is not too long


def test_a_usual_text_is_not_shortened():
    text = "The upgrade from jax==0.10.1 to jax==0.10.2 is safe: " + "a message of many words " * 30
    assert content.short(text) == text
    assert content.short(NAME) == f"{'n' * 80} … {'n' * 30}"
