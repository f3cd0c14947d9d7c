"""Numbers of releases: measured side by side, written as asv writes them, and read by asv itself."""

import dataclasses
import json
import math
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stele import __main__ as door
from stele import environments
from stele.gate.trial import Cell
from stele.measuring import measure
from stele.measuring.measure import SideFailed
from stele.measuring.settings import Settings
from stele.measuring.worker import WorkerError
from stele.releases import campaign, frameworks, history, ledger, measuring, trend
from stele.releases.campaign import Wanted
from stele.releases.index import Release
from stele.report import releases as pages

FOUR = [f"1.{number}" for number in range(1, 5)]
TAGS = [f"abacus-{name}" for name in FOUR]
CELL = "gru infer tuned"


@pytest.fixture
def abacus(row, monkeypatch, tmp_path):
    """A ledger of four releases of abacus, and a home without an asv."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    row("abacus", absent={"gru train": "it only infers", "cnn": "no images"})
    path = environments.folders()[1] / "abacus.toml"
    path.write_text('python = ">=3.10"\n' + path.read_text() + '[requirements]\n"abacus" = "the framework"\n')
    environments.rows.cache_clear()
    releases = [
        Release("abacus", name, f"2024-01-0{number}T00:00:00+00:00") for number, name in enumerate(FOUR, 1)
    ]
    ledger.add("abacus", frameworks.row("abacus"), releases)


@pytest.fixture
def machine(abacus, run, monkeypatch):
    """machine(factors) -> a list of what was timed together; a release is slower by its factor, others fail."""
    measured = []
    monkeypatch.setattr(measure, "inputs", lambda task: ({"data": None, "data_origin": {}}, None))
    monkeypatch.setattr(campaign.builds, "make", lambda row: True)

    def machine(factors, speed=1.0):
        def side_by_side(sides, plan, settings, **_):
            if plan.scale == "gate":
                measured.append(sorted(sides))
            for side in sides:
                if side not in factors:
                    raise SideFailed(side, WorkerError(f"'{side}' crashed"))
            return {side: slowed(run, side, speed * factors[side], plan, settings) for side in sides}

        monkeypatch.setattr(measure, "side_by_side", side_by_side)
        return measured

    return machine


def slowed(run, side, factor, plan, settings):
    return dataclasses.replace(
        run,
        when=f"2026-01-01T00:00:00.{time.monotonic_ns() % 10**6:06}",
        environment=side,
        task=plan.task,
        phase=plan.phase,
        plan={"turn": 1},
        host_memory=run.host_memory if settings.malloc == "plain" else 2 * run.host_memory,
        seconds=tuple(factor * second for second in run.seconds),
    )


def wanted(**fields):
    known = {
        "cells": (Cell("gru", "train"), Cell("gru", "infer")),
        "settings": Settings(device="cpu", threads=1),
        "launches": 3,
        "scale": "gate",
        "error": None,
        "deadline": time.monotonic() + 60,
        "say": lambda line: None,
    }
    return Wanted(**{**known, **fields})


def steps():
    return {tag: (history.numbers(tag, history.here()) or {}).get("step", {}).get(CELL) for tag in TAGS}


def test_releases_are_measured_together_and_once(machine):
    measured = machine(dict(zip(TAGS, [1.0, 1.0, 1.1, 1.1], strict=True)))
    assert campaign.measured(TAGS, wanted())
    assert measured == [TAGS] * 3
    assert steps() == pytest.approx(dict(zip(TAGS, [0.01, 0.01, 0.011, 0.011], strict=True)), rel=1e-6)
    assert campaign.measured(TAGS, wanted())
    assert len(measured) == 3


def test_memory_is_that_of_the_allocator_as_it_comes(machine, run):
    machine(dict.fromkeys(TAGS, 1.0))
    campaign.measured(TAGS, wanted(settings=Settings(device="cpu", threads=1, malloc="steady")))
    known = history.numbers(TAGS[0], history.here())
    assert known["host_memory"][CELL] == run.host_memory


def test_a_line_goes_on_where_it_was_though_the_machine_became_slower(machine):
    machine(dict.fromkeys(TAGS, 1.0))
    campaign.measured(TAGS[:2], wanted())
    measured = machine({**dict.fromkeys(TAGS, 1.0), TAGS[3]: 1.05}, speed=1.5)
    del measured[:]
    campaign.measured(TAGS, wanted())
    assert measured == [[TAGS[0], *TAGS[2:]]] * 3  # the oldest is the anchor
    assert steps() == pytest.approx(dict(zip(TAGS, [0.01, 0.01, 0.01, 0.0105], strict=True)), rel=1e-6)


def test_all_numbers_of_a_line_go_on_where_they_were(machine):
    machine(dict.fromkeys(TAGS, 1.0))
    campaign.measured(TAGS[:2], wanted())
    machine(dict.fromkeys(TAGS, 1.0), speed=1.5)  # the first step takes half as much again, of all of them
    campaign.measured(TAGS, wanted())
    known = [history.numbers(tag, history.here()) for tag in TAGS]
    assert [one["first_step"] for one in known] == [known[0]["first_step"]] * 4


def test_a_release_that_fails_costs_only_itself(machine):
    measured = machine(dict.fromkeys(TAGS[:1] + TAGS[2:], 1.0))
    campaign.measured(TAGS, wanted())
    assert [tag for tag, value in steps().items() if value is None] == [TAGS[1]]
    assert history.recorded(TAGS[1], history.here(), "step") == {CELL}
    count = len(measured)
    campaign.measured(TAGS, wanted())
    assert len(measured) == count  # and is not tried again


def test_a_cell_that_fails_is_on_record_beside_those_that_do_not(machine):
    measured = machine(dict.fromkeys(TAGS, 1.0))
    campaign.measured(TAGS, wanted())
    history.save(TAGS[0], history.here(), {"step": {"gru train tuned": None}})
    history.save(TAGS[0], history.here(), {"step": {"cnn infer tuned": 0.1}})
    assert history.recorded(TAGS[0], history.here(), "step") == {CELL, "gru train tuned", "cnn infer tuned"}
    assert history.numbers(TAGS[0], history.here())["step"] == {
        CELL: pytest.approx(0.01),
        "cnn infer tuned": 0.1,
    }
    campaign.measured(TAGS, wanted())
    assert len(measured) == 3


def test_a_training_that_fails_is_on_record(machine, monkeypatch):
    def crashed(row, cell, settings, scale):
        tried.append(row.name)
        raise SideFailed(row.name, WorkerError("it crashed"))

    tried = []
    monkeypatch.setattr(campaign, "has", lambda *_: True)
    monkeypatch.setattr(measuring, "error", crashed)
    row = frameworks.environment(TAGS[0], ledger.content(TAGS[0]))
    for _ in range(2):
        assert campaign.errors([row], wanted(error="quick"), history.here())
    assert tried == [TAGS[0]]


def test_a_release_that_cannot_be_built_is_on_record(machine, monkeypatch):
    def make(row):
        if row.name == TAGS[0]:
            raise campaign.Unsolvable("no solution")
        return True

    machine(dict.fromkeys(TAGS, 1.0))
    monkeypatch.setattr(campaign.builds, "make", make)
    assert campaign.measured(TAGS, wanted())
    metrics = history.numbers(TAGS[1], history.here())
    assert history.numbers(TAGS[0], history.here()) == {metric: {} for metric in metrics}


def test_a_release_that_could_not_be_built_today_is_tried_again(machine, monkeypatch):
    def make(row):
        raise campaign.SteleError("the package index did not answer")

    measured = machine(dict.fromkeys(TAGS, 1.0))
    with monkeypatch.context() as patch:
        patch.setattr(campaign.builds, "make", make)
        campaign.measured(TAGS, wanted())
    campaign.measured(TAGS, wanted())
    assert measured == [TAGS] * 3


def test_when_the_time_is_up_the_rest_waits(machine):
    measured = machine(dict.fromkeys(TAGS, 1.0))
    assert not campaign.measured(TAGS, wanted(deadline=0.0))
    assert measured == []


def test_more_than_eight_are_measured_in_groups_beside_the_anchor():
    rows = list(range(20))
    groups = list(measuring.groups(rows))
    assert [len(group) for group in groups] == [7, 7, 6]
    assert sorted(row for group in groups for row in group) == rows


def test_a_damaged_file_is_named_and_set_aside(machine, capsys):
    machine(dict.fromkeys(TAGS, 1.0))
    campaign.measured(TAGS, wanted())
    path = history.file(TAGS[0], history.here())
    path.write_text('{"results": [')
    assert history.numbers(TAGS[0], history.here()) is None
    assert re.search(r"is damaged .* set aside as \w+-virtualenv-py[\d.]+\.damaged", capsys.readouterr().err)
    assert not path.exists() and path.with_suffix(".damaged").exists()


def test_another_machine_is_another_line(machine, monkeypatch):
    machine(dict.fromkeys(TAGS, 1.0))
    campaign.measured(TAGS, wanted())
    monkeypatch.setattr("stele.measuring.machine.processor", lambda: "Abacus 3000")
    assert set(steps().values()) == {None}


def test_asv_tracks_what_stele_measures():
    found = {benchmark["name"]: benchmark for benchmark in history.benchmarks()}
    assert set(found) == {
        f"recipes.track_{name}"
        for name in ("step", "first_step", "import", "host_memory", "device_memory", "error")
    }
    step = found["recipes.track_step"]
    assert (step["unit"], step["version"], step["type"]) == ("seconds", "1", "track")
    assert step["param_names"] == ["task", "phase", "mode"]
    assert history.named(step)[:3] == ["cnn train tuned", "cnn train as-shipped", "cnn infer tuned"]


def test_asv_publishes_a_line_over_releases_and_its_step(machine, tmp_path, monkeypatch):
    ledger.add(
        "abacus",
        frameworks.row("abacus"),
        [Release("abacus", f"1.{number}", f"2024-02-0{number}T00:00:00+00:00") for number in range(5, 9)],
    )
    tags = ledger.tags("abacus")
    machine({tag: 1.0 if number < 4 else 1.2 for number, tag in enumerate(tags)})
    campaign.measured(tags, wanted())
    site = tmp_path / "site"
    history.publish(site)
    lines = dict(trend.lines(site))
    line = lines["track_step gru infer tuned, abacus"]
    assert line.releases == tags
    assert line.values == pytest.approx([0.01] * 4 + [0.012] * 4, rel=1e-6)
    monkeypatch.setattr(trend, "seconded", lambda found: [[4] for _ in found])
    risen = [rise for rise in trend.rises(site) if rise.line == "track_step gru infer tuned, abacus"]
    assert [rise.message for rise in risen] == [
        "track_step gru infer tuned, abacus: +20.0 % at abacus-1.5, from 0.01 to 0.012; Otava agrees"
    ]
    report = pages.markdown(risen, ["abacus-1.5"])
    assert report.startswith("# 1 steps in 1 releases\n") and "## New\n- track_step" in report
    assert "## Known" in pages.markdown(risen, [])


def test_steps_are_told_up_and_down():
    values = [1.0, 1.0, 1.0, 1.2, 1.2, 1.2, 0.9, 0.9, 0.9]
    found = trend.steps(trend.Line([f"abacus-1.{number}" for number in range(9)], values))
    assert [(step.release, round(step.after / step.before, 2)) for step in found] == [
        ("abacus-1.3", 1.2),
        ("abacus-1.6", 0.75),
    ]


def test_otava_is_asked_and_may_be_missing(monkeypatch):
    line = trend.Line(TAGS, [1.0, 1.0, 2.0, 2.0])
    asked = []

    def start(*arguments, text):
        asked.append(json.loads(text))
        return subprocess.CompletedProcess(arguments, 0, stdout="[[[2, 1.0, 2.0]]]")

    monkeypatch.setattr(trend, "start", start)
    assert trend.seconded([line]) == [[2]] and asked == [[line.values]]
    assert trend.agrees(line, TAGS[2], [2]) and not trend.agrees(line, TAGS[0], [2])
    monkeypatch.setattr(trend, "start", lambda *_, text: subprocess.CompletedProcess([], 1, stdout=""))
    assert trend.seconded([line]) is None
    assert trend.seconded([]) == []


# the commands


OPTIONS = ["--task=gru", "--phase=infer", "--launches=2"]


def test_the_command_measures_and_lists(machine, capsys):
    measured = machine(dict.fromkeys(TAGS, 1.0))
    assert door.main(["releases", "run", "abacus-1.1..abacus-1.4", *OPTIONS]) == 0
    assert measured == [TAGS[1:]] * 2
    assert door.main(["releases", "list", "abacus"]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.split()[:2] == ["abacus-1.1", "2024-01-01"] and "numbers" not in first
    assert second.endswith("4 numbers")


def test_releases_of_a_framework_are_measured_together_however_they_are_named(machine):
    measured = machine(dict.fromkeys(TAGS, 1.0))
    named = [TAGS[3], TAGS[0], f"{TAGS[0]}..{TAGS[1]}"]
    assert door.main(["releases", "run", *named, *OPTIONS]) == 0
    assert measured == [[TAGS[0], TAGS[1], TAGS[3]]] * 2


def test_the_command_says_when_the_time_was_too_short(machine):
    machine(dict.fromkeys(TAGS, 1.0))
    assert door.main(["releases", "run", "abacus", *OPTIONS, "--budget=0s"]) == 3


def test_an_unknown_release_shows_the_nearest(machine, capsys):
    machine({})
    assert door.main(["releases", "run", "abacus-1.9", *OPTIONS]) == 2
    assert "Unknown release 'abacus-1.9'. Did you mean abacus-1." in capsys.readouterr().err


def test_what_asv_installed_is_measured_and_printed(machine, capsys):
    machine(dict.fromkeys(TAGS, 1.1))
    commit, _ = ledger.commit(TAGS[0])
    assert door.main(["releases", "measure", commit, "--python", sys.executable, *OPTIONS]) == 0
    found = json.loads(capsys.readouterr().out)["numbers"]
    assert found["step"] == {CELL: pytest.approx(0.011, rel=1e-6)}
    assert door.main(["releases", "measure", "abacus-9", "--python", sys.executable, *OPTIONS]) == 2


def test_a_night_measures_what_is_new_and_says_what_rose(machine, capsys, monkeypatch, tmp_path):
    known = [
        Release("abacus", name, f"2024-01-0{number}T00:00:00+00:00") for number, name in enumerate(FOUR, 1)
    ]
    monkeypatch.setattr("stele.commands.releases.index.releases", lambda package, prereleases=False: known)
    monkeypatch.setattr(trend, "seconded", lambda found: None)
    machine(dict(zip(TAGS, [1.0, 1.0, 1.2, 1.2], strict=True)))
    night = ["nightly", "abacus", *OPTIONS, f"--site={tmp_path / 'site'}"]
    assert door.main(night) == 1
    out = capsys.readouterr().out
    assert "track_step gru infer tuned, abacus: +20.0 % at abacus-1.3" in out
    assert "4 releases measured, 2 steps." in out  # the first step is slower, too
    assert (tmp_path / "site" / "index.html").exists() and Path(".stele/nightly.md").exists()
    assert door.main(night) == 0  # what is known does not alarm again
    assert "0 releases measured, 0 steps." in capsys.readouterr().out


def test_a_step_is_a_share_of_the_level_before_it():
    assert (
        trend.Step("abacus-1.1", 1.0, 1.0305).height
        > trend.LEAST
        > trend.Step("abacus-1.1", 1.0, 0.9705).height
    )
    assert trend.Step("abacus-1.1", 0.0, 0.1).height == math.inf


def test_the_history_is_a_page(machine, tmp_path, capsys):
    machine(dict(zip(TAGS, [1.0, 1.0, 0.8, 0.8], strict=True)))
    door.main(["releases", "run", "abacus", *OPTIONS])
    page = tmp_path / "page.md"
    page.write_text("# History\n<!-- generated by: stele -->\n<!-- end of what is generated -->\n")
    assert door.main(["releases", "report", f"--site={tmp_path / 'site'}", f"--write={page}"]) == 0
    step, line = [line for line in page.read_text().splitlines() if "track_step" in line]
    assert step == "- abacus-1.3: track_step gru infer tuned, abacus, -20.0 %"
    assert "| 4, abacus-1.1 to abacus-1.4 | 0.01 | 0.008 | -20.0 % | abacus-1.3 -20.0 % |" in line


def test_what_asv_writes_and_what_stele_writes_have_one_name(machine):
    machine(dict.fromkeys(TAGS, 1.0))
    campaign.measured(TAGS[:1], wanted())
    [path] = [path for path in history.RESULTS.glob("*/*.json") if path.name != "machine.json"]
    content = json.loads(path.read_text())
    assert content["env_name"] == history.here().environment
    assert content["params"]["machine"] == path.parent.name
    assert set(content["params"]) == {"machine", "os", "arch", "cpu", "num_cpu", "ram", "python"}
    value = content["results"]["recipes.track_error"][0]
    assert value is None or all(math.isnan(number) for number in value)
