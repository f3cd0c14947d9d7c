"""Steps and rises in a line over releases."""

import json
import math
import subprocess

import pytest

from stele.releases import campaign, frameworks, history, ledger, trend
from stele.releases.index import Release
from stele.report import releases as pages
from tests.support.histories import TAGS, request


@pytest.mark.slow
def test_asv_publishes_a_line_over_releases_and_its_step(machine, tmp_path, monkeypatch):
    ledger.add(
        "abacus",
        frameworks.environment_of("abacus"),
        [Release("abacus", f"1.{number}", f"2024-02-0{number}T00:00:00+00:00") for number in range(5, 9)],
    )
    tags = ledger.tags("abacus")
    machine({tag: 1.0 if number < 4 else 1.2 for number, tag in enumerate(tags)})
    campaign.measure_releases(tags, request())
    site = tmp_path / "site"
    history.publish(site)
    lines = {graph.title: graph.line for graph in trend.graphs(site)}
    line = lines["track_step gru infer tuned, abacus"]
    assert line.releases == tags
    assert line.values == pytest.approx([0.01] * 4 + [0.012] * 4, rel=1e-6)
    monkeypatch.setattr(trend, "otava_changes", lambda lines: [[4] for _ in lines])
    trend.record_changes(site)
    rises = [rise for rise in trend.rises(site) if rise.line == "track_step gru infer tuned, abacus"]
    assert [rise.message for rise in rises] == [
        "track_step gru infer tuned, abacus: +20.0 % at abacus-1.5, from 0.01 to 0.012; Otava agrees"
    ]
    report = pages.markdown(rises, ["abacus-1.5"])
    assert report.startswith("# 1 steps in 1 releases\n") and "## New\n- track_step" in report
    assert "## Known" in pages.markdown(rises, [])


def test_steps_up_and_down_are_found():
    values = [1.0, 1.0, 1.0, 1.2, 1.2, 1.2, 0.9, 0.9, 0.9]
    steps_found = trend.steps(trend.Curve([f"abacus-1.{number}" for number in range(9)], values))
    assert [(step.release, round(step.after / step.before, 2)) for step in steps_found] == [
        ("abacus-1.3", 1.2),
        ("abacus-1.6", 0.75),
    ]


# training of the CNN as JAX is shipped, in seconds: XLA used another library for convolutions from 0.9.1 on
JAX = [0.3972, 0.4378, 0.4171, 0.4082, 0.4092, 0.501, 0.541, 0.507]


def test_a_step_that_only_otava_finds_divides_the_line():
    line = trend.Curve([f"jax-{number}" for number in range(8)], JAX)
    assert trend.steps(line) == []
    [step] = trend.steps(line._replace(changes=(5,)))
    assert (step.release, step.before, step.after) == ("jax-5", 0.4092, 0.507)
    assert [(level.start, level.end) for level in trend.levels(line._replace(changes=(5,)))] == [
        (0, 5),
        (5, 8),
    ]


def test_a_change_of_otava_beside_a_step_of_asv_is_the_same_step():
    line = trend.Curve(TAGS, [1.0, 1.0, 2.0, 2.0])
    assert trend.steps(line._replace(changes=(3,))) == trend.steps(line)


@pytest.mark.slow
def test_a_rise_that_only_otava_finds_is_reported(machine, tmp_path, monkeypatch):
    ledger.add(
        "abacus",
        frameworks.environment_of("abacus"),
        [Release("abacus", f"1.{number}", f"2024-02-0{number}T00:00:00+00:00") for number in range(5, 9)],
    )
    tags = ledger.tags("abacus")
    machine(dict(zip(tags, (seconds / JAX[0] for seconds in JAX), strict=True)))
    campaign.measure_releases(tags, request())
    site = history.publish(tmp_path / "site")
    trend.record_changes(site)
    assert trend.rises(site) == []
    monkeypatch.setattr(
        trend,
        "otava_changes",
        lambda lines: [[5] if line.values[0] != line.values[-1] else [] for line in lines],
    )
    trend.record_changes(site)
    [message] = [rise.message for rise in trend.rises(site) if "track_step gru infer" in rise.line]
    assert message == (
        "track_step gru infer tuned, abacus: +23.9 % at abacus-1.6, from 0.0103 to 0.01276; Otava agrees"
    )
    monkeypatch.setattr(trend, "otava_changes", lambda lines: None)
    trend.record_changes(site)
    assert trend.rises(site) == []


def test_otava_is_used_if_it_is_available(monkeypatch):
    line = trend.Curve(TAGS, [1.0, 1.0, 2.0, 2.0])
    inputs = []

    def start(*arguments, text):
        inputs.append(json.loads(text))
        return subprocess.CompletedProcess(arguments, 0, stdout="[[[2, 1.0, 2.0]]]")

    monkeypatch.setattr(trend, "try_uv", start)
    assert trend.otava_changes([line]) == [[2]] and inputs == [[line.values]]
    assert trend.is_near_change(line, TAGS[2], [2]) and not trend.is_near_change(line, TAGS[0], [2])
    monkeypatch.setattr(trend, "try_uv", lambda *_, text: subprocess.CompletedProcess([], 1, stdout=""))
    assert trend.otava_changes([line]) is None
    assert trend.otava_changes([]) == []


def test_the_height_of_a_step_is_relative_to_the_level_before_it():
    assert (
        trend.LevelStep("abacus-1.1", 1.0, 1.0305).height
        > trend.MIN_STEP
        > trend.LevelStep("abacus-1.1", 1.0, 0.9705).height
    )
    assert trend.LevelStep("abacus-1.1", 0.0, 0.1).height == math.inf
