"""Numbers of releases: measured side by side, written in asv's format, and read by asv."""

import argparse
import dataclasses
import json
import math
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stele import __main__ as entry_point
from stele import environments
from stele.commands import releases as releases_command
from stele.errors import SteleError
from stele.gate.trial import Cell
from stele.measuring import content, measure
from stele.measuring.content import Reads
from stele.measuring.measure import SideFailed
from stele.measuring.settings import Settings
from stele.measuring.worker import WorkerError
from stele.models.arms import Extras
from stele.models.inputs import Input
from stele.models.spec import Model
from stele.releases import campaign, frameworks, history, ledger, measuring, trend
from stele.releases.campaign import Request
from stele.releases.index import Release
from stele.report import releases as pages

FOUR = [f"1.{number}" for number in range(1, 5)]
TAGS = [f"abacus-{name}" for name in FOUR]
CELL = "gru infer tuned"


@pytest.fixture
def abacus(add_environment, monkeypatch, tmp_path):
    """A ledger of four releases of abacus, and a home folder without asv's files. Otava is not available."""
    monkeypatch.setattr(trend, "otava_changes", lambda lines: None)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    add_environment("abacus", absent={"gru train": "it only infers", "cnn": "no images"})
    path = environments.folders()[1] / "abacus.toml"
    path.write_text('python = ">=3.10"\n' + path.read_text() + '[requirements]\n"abacus" = "the framework"\n')
    environments.described.cache_clear()
    releases = [
        Release("abacus", name, f"2024-01-0{number}T00:00:00+00:00") for number, name in enumerate(FOUR, 1)
    ]
    ledger.add("abacus", frameworks.environment_of("abacus"), releases)


@pytest.fixture
def machine(abacus, run, monkeypatch):
    """machine(factors) -> a list that receives the releases timed together.

    A release is slower by its factor. Releases without a factor fail.
    """
    timed = []
    monkeypatch.setattr(measure, "inputs", lambda task: ({"data": None, "data_origin": {}}, None))
    monkeypatch.setattr(campaign.builds, "make", lambda environment: True)

    def machine(factors, speed=1.0):
        def side_by_side(sides, plan, settings, **_):
            if plan.scale == "gate":
                timed.append(sorted(sides))
            for side in sides:
                if side not in factors:
                    raise SideFailed(side, WorkerError(f"'{side}' crashed"))
            return {side: slowed(run, side, speed * factors[side], plan, settings) for side in sides}

        monkeypatch.setattr(measure, "side_by_side", side_by_side)
        return timed

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


def request(**fields):
    defaults = {
        "cells": (Cell("gru", "train"), Cell("gru", "infer")),
        "settings": Settings(device="cpu", threads=1),
        "launches": 3,
        "scale": "gate",
        "error": None,
        "deadline": time.monotonic() + 60,
        "say": lambda message: None,
    }
    return Request(**{**defaults, **fields})


def steps():
    return {
        tag: (history.numbers(tag, history.current_place()) or {}).get("step", {}).get(CELL) for tag in TAGS
    }


def test_releases_are_measured_together_and_only_once(machine):
    timed = machine(dict(zip(TAGS, [1.0, 1.0, 1.1, 1.1], strict=True)))
    assert campaign.measure_releases(TAGS, request())
    assert timed == [TAGS] * 3
    assert steps() == pytest.approx(dict(zip(TAGS, [0.01, 0.01, 0.011, 0.011], strict=True)), rel=1e-6)
    assert campaign.measure_releases(TAGS, request())
    assert len(timed) == 3


OTHER_DATA = {"data": None, "data_origin": {"origin": "official", "fingerprint": "1"}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda patch: patch.setattr(content, "of_package", lambda package: {}), "Stele itself changed"),
        (
            lambda patch: patch.setattr(measure, "inputs", lambda task: (OTHER_DATA, None)),
            "the data of gru was",
        ),
        (lambda patch: None, "threads was 1 and is now 2"),
    ],
    ids=["code", "data", "options"],
)
def test_numbers_of_another_content_are_measured_again_and_are_no_anchor(
    machine, monkeypatch, change, message
):
    timed, said = machine(dict.fromkeys(TAGS, 1.0)), []
    campaign.measure_releases(TAGS[:3], request())
    before = {tag: history.numbers(tag, history.current_place()) for tag in TAGS}
    change(monkeypatch)
    del timed[:]
    threads = 2 if message.startswith("threads") else 1
    again = request(say=said.append, settings=Settings(device="cpu", threads=threads))
    assert campaign.measure_releases(TAGS[1:], again)
    assert timed == [TAGS[1:]] * 3  # and not the oldest, whose number is of another content
    [line] = [line for line in said if line.startswith(f"{TAGS[1]}, gru infer: measured again, because ")]
    assert message in line
    new = [
        tag for tag in TAGS if history.has_more(history.numbers(tag, history.current_place()), before[tag])
    ]
    assert new == TAGS[3:]
    assert campaign.measure_releases(TAGS[1:], again) and len(timed) == 3


@pytest.mark.parametrize("damage", [None, [], {CELL: 3}, {CELL: {"code": "x"}}])
def test_a_number_whose_content_is_unknown_is_measured_again(machine, damage):
    timed = machine(dict.fromkeys(TAGS, 1.0))
    campaign.measure_releases(TAGS, request())
    for tag in TAGS:
        path = history.file(tag, history.current_place())
        path.write_text(json.dumps({**json.loads(path.read_text()), history.CONTENTS: damage}))
    assert campaign.measure_releases(TAGS, request()) and len(timed) == 6
    assert campaign.measure_releases(TAGS, request()) and len(timed) == 6


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": (Input(None, "float", (1024, 8), None),)},
        {"optimizer": "optim:Own"},
        {"pretrained": Path("w.safetensors")},
        {"reads": Reads((Path("w.safetensors"),))},
        {"reads": Reads(variables=("HIDDEN",))},
        {"extras": Extras(requirements=("flax",))},
        {"metric": "error"},
        {"variable": "1"},
        {"description": "other"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_number_belongs_to_all_that_decides_it(abacus, monkeypatch, change):
    """``stele releases run --model`` with other options measures again."""
    monkeypatch.setenv("HIDDEN", "8")
    Path("w.safetensors").write_text("")
    release = frameworks.release_environment(TAGS[0], ledger.content(TAGS[0]))
    model, cell = Model("net.py:build", Path.cwd()), Cell("net.py:build", "train")

    def found(*, metric="step", extras=Extras(), variable="0", description="x", **changes):  # noqa: B008
        monkeypatch.setenv("XLA_FLAGS", variable)
        one = request(model=dataclasses.replace(model, **changes), extras=extras, error="smoke")
        arm = dataclasses.replace(release, framework=description)
        return campaign.content_of(arm, cell, metric, one)

    assert content.changes(found(), found()) is None
    assert content.changes(found(), found(**change)) is not None


def test_the_error_of_another_scale_is_trained_again(machine, monkeypatch):
    trained = []
    monkeypatch.setattr(campaign, "has_cell", lambda *_: True)
    monkeypatch.setattr(measuring, "measure_error", lambda *_, scale: trained.append(scale))
    monkeypatch.setattr(campaign.tasks, "make", lambda *_: argparse.Namespace(data="imdb"))
    release = frameworks.release_environment(TAGS[0], ledger.content(TAGS[0]))
    for scale in ("smoke", "smoke", "quick", "quick"):
        assert campaign.measure_errors([release], request(error=scale), history.current_place())
    assert trained == ["smoke", "quick"]


@pytest.mark.parametrize("name", ["XLA_FLAGS", "KERAS_BACKEND"])
def test_nothing_is_saved_if_something_changes_between_two_launches(machine, monkeypatch, name):
    machine(dict.fromkeys(TAGS, 1.0))
    side_by_side = measure.side_by_side

    def changing(*given, **named):
        monkeypatch.setenv(name, str(time.monotonic()))
        return side_by_side(*given, **named)

    monkeypatch.setattr(measure, "side_by_side", changing)
    with pytest.raises(SteleError, match=f"changed during the measurement: {name} was"):
        campaign.measure_releases(TAGS, request())
    assert set(steps().values()) == {None}


def test_launches_of_a_release_with_different_contents_are_not_pooled(machine, monkeypatch):
    machine(dict.fromkeys(TAGS, 1.0))
    side_by_side = measure.side_by_side

    def changing(*given, **named):
        runs = side_by_side(*given, **named)
        return {
            side: dataclasses.replace(run, content={"code": str(time.monotonic())})
            for side, run in runs.items()
        }

    monkeypatch.setattr(measure, "side_by_side", changing)
    with pytest.raises(
        SteleError, match=r"The launches of abacus-1.\d cannot be compared, because Stele itself"
    ):
        campaign.measure_releases(TAGS, request())


def test_memory_is_measured_with_the_plain_allocator(machine, run):
    machine(dict.fromkeys(TAGS, 1.0))
    campaign.measure_releases(TAGS, request(settings=Settings(device="cpu", threads=1, malloc="steady")))
    numbers = history.numbers(TAGS[0], history.current_place())
    assert numbers["host_memory"][CELL] == run.host_memory


def test_a_line_stays_continuous_when_the_machine_becomes_slower(machine):
    machine(dict.fromkeys(TAGS, 1.0))
    campaign.measure_releases(TAGS[:2], request())
    timed = machine({**dict.fromkeys(TAGS, 1.0), TAGS[3]: 1.05}, speed=1.5)
    del timed[:]
    campaign.measure_releases(TAGS, request())
    assert timed == [[TAGS[0], *TAGS[2:]]] * 3  # the oldest is the anchor
    assert steps() == pytest.approx(dict(zip(TAGS, [0.01, 0.01, 0.01, 0.0105], strict=True)), rel=1e-6)


def test_all_numbers_stay_continuous_when_the_machine_becomes_slower(machine):
    machine(dict.fromkeys(TAGS, 1.0))
    campaign.measure_releases(TAGS[:2], request())
    machine(dict.fromkeys(TAGS, 1.0), speed=1.5)  # all first steps take 1.5 times as long
    campaign.measure_releases(TAGS, request())
    first_steps = [history.numbers(tag, history.current_place())["first_step"] for tag in TAGS]
    assert first_steps == [first_steps[0]] * 4


def test_a_release_that_fails_does_not_affect_the_others(machine):
    timed = machine(dict.fromkeys(TAGS[:1] + TAGS[2:], 1.0))
    campaign.measure_releases(TAGS, request())
    assert [tag for tag, value in steps().items() if value is None] == [TAGS[1]]
    assert history.recorded_cells(TAGS[1], history.current_place(), "step") == {CELL}
    count = len(timed)
    campaign.measure_releases(TAGS, request())
    assert len(timed) == count  # the failed release is not tried again


def test_the_failure_of_a_cell_is_saved_beside_the_numbers_of_other_cells(machine):
    timed = machine(dict.fromkeys(TAGS, 1.0))
    campaign.measure_releases(TAGS, request())
    history.save(TAGS[0], history.current_place(), {"step": {"gru train tuned": None}})
    history.save(TAGS[0], history.current_place(), {"step": {"cnn infer tuned": 0.1}})
    assert history.recorded_cells(TAGS[0], history.current_place(), "step") == {
        CELL,
        "gru train tuned",
        "cnn infer tuned",
    }
    assert history.numbers(TAGS[0], history.current_place())["step"] == {
        CELL: pytest.approx(0.01),
        "cnn infer tuned": 0.1,
    }
    campaign.measure_releases(TAGS, request())
    assert len(timed) == 3


def test_a_release_whose_first_cell_failed_is_measured_in_the_other_cells(abacus):
    """A campaign may stop between two cells."""
    cells = (Cell("gru", "infer"), Cell("resnet50", "infer"))
    place, release = history.current_place(), frameworks.release_environment(TAGS[0], ledger.content(TAGS[0]))
    found = {
        f"{cell} tuned": campaign.content_of(release, cell, "step", request(cells=cells)) for cell in cells
    }
    failed = {"step": {"gru infer tuned": None}, "error": {"gru infer tuned": None}}
    history.save(TAGS[0], place, failed, contents=found)
    assert not campaign.is_complete(TAGS[0], place, request(cells=cells))
    history.save(TAGS[0], place, {"step": {"resnet50 infer tuned": 0.1}})
    assert campaign.is_complete(TAGS[0], place, request(cells=cells))


def test_a_release_that_cannot_be_built_is_complete(abacus):
    place = history.current_place()
    history.save(TAGS[0], place, {}, failure="no solution")
    assert campaign.is_complete(TAGS[0], place, request())


def test_a_training_that_fails_is_saved(machine, monkeypatch):
    def crash(release, cell, settings, scale):
        attempts.append(release.name)
        raise SideFailed(release.name, WorkerError("it crashed"))

    attempts = []
    monkeypatch.setattr(campaign, "has_cell", lambda *_: True)
    monkeypatch.setattr(measuring, "measure_error", crash)
    release = frameworks.release_environment(TAGS[0], ledger.content(TAGS[0]))
    for _ in range(2):
        assert campaign.measure_errors([release], request(error="quick"), history.current_place())
    assert attempts == [TAGS[0]]


def test_a_release_that_cannot_be_built_is_saved_as_a_failure(machine, monkeypatch):
    def make(environment):
        if environment.name == TAGS[0]:
            raise campaign.Unsolvable("no solution")
        return True

    machine(dict.fromkeys(TAGS, 1.0))
    monkeypatch.setattr(campaign.builds, "make", make)
    assert campaign.measure_releases(TAGS, request())
    metrics = history.numbers(TAGS[1], history.current_place())
    assert history.numbers(TAGS[0], history.current_place()) == {metric: {} for metric in metrics}


def test_a_release_that_could_not_be_built_for_now_is_tried_again(machine, monkeypatch):
    def make(environment):
        raise campaign.SteleError("the package index did not answer")

    timed = machine(dict.fromkeys(TAGS, 1.0))
    with monkeypatch.context() as patch:
        patch.setattr(campaign.builds, "make", make)
        campaign.measure_releases(TAGS, request())
    campaign.measure_releases(TAGS, request())
    assert timed == [TAGS] * 3


def test_nothing_is_measured_after_the_deadline(machine):
    timed = machine(dict.fromkeys(TAGS, 1.0))
    assert not campaign.measure_releases(TAGS, request(deadline=0.0))
    assert timed == []


def test_more_than_eight_releases_are_measured_in_groups_beside_the_anchor():
    releases = list(range(20))
    groups = list(measuring.groups(releases))
    assert [len(group) for group in groups] == [7, 7, 6]
    assert sorted(release for group in groups for release in group) == releases


def test_a_damaged_file_is_reported_and_renamed(machine, capsys):
    machine(dict.fromkeys(TAGS, 1.0))
    campaign.measure_releases(TAGS, request())
    path = history.file(TAGS[0], history.current_place())
    path.write_text('{"results": [')
    assert history.numbers(TAGS[0], history.current_place()) is None
    assert re.search(
        r"is damaged: .* It was renamed to \w+-virtualenv-py[\d.]+\.damaged", capsys.readouterr().err
    )
    assert not path.exists() and path.with_suffix(".damaged").exists()


def test_other_modes_have_lines_of_their_own(machine):
    path = environments.folders()[1] / "abacus.toml"
    path.write_text(path.read_text() + '[modes.plain]\nlabel = "plain"\n[modes.slow]\nlabel = "slow"\n')
    environments.described.cache_clear()
    assert releases_command.parse_modes("tuned,slow") == ("tuned", "slow")
    timed = machine(dict.fromkeys(TAGS, 1.0))
    for _ in range(2):
        assert campaign.measure_releases(TAGS, request(modes=("tuned", "slow")))
        assert set(history.numbers(TAGS[0], history.current_place())["step"]) == {CELL, "gru infer slow"}
    assert len(timed) == 6  # not measured again


def test_a_model_has_only_the_first_mode(abacus, capsys):
    command = ["releases", "run", "abacus", "--model", "package.net:Net"]
    assert entry_point.main([*command, "--mode", "compile"]) == 2
    assert "Leave out --mode" in capsys.readouterr().err
    assert not history.MODELS.exists()


def test_the_error_is_measured_only_with_the_first_mode():
    no_release = [None]  # whose use would be an exception
    assert campaign.measure_errors(no_release, request(modes=("slow",), error="smoke"), None)


def test_all_modes_can_be_selected_and_an_unknown_one_is_an_error(abacus):
    assert {"tuned", "as-shipped", "compile", "xla"} <= set(releases_command.parse_modes("all"))
    with pytest.raises(SteleError, match="Unknown mode 'compil'. Did you mean 'compile'"):
        releases_command.parse_modes("compil")


def test_a_different_machine_starts_a_new_line(machine, monkeypatch):
    machine(dict.fromkeys(TAGS, 1.0))
    campaign.measure_releases(TAGS, request())
    monkeypatch.setattr("stele.measuring.machine.processor", lambda: "Abacus 3000")
    assert set(steps().values()) == {None}


def test_asv_tracks_the_metrics_that_stele_measures():
    benchmarks = {benchmark["name"]: benchmark for benchmark in history.benchmarks()}
    assert set(benchmarks) == {
        f"recipes.track_{name}"
        for name in ("step", "first_step", "import", "host_memory", "device_memory", "error")
    }
    step = benchmarks["recipes.track_step"]
    assert (step["unit"], step["version"], step["type"]) == ("seconds", "1", "track")
    assert step["param_names"] == ["task", "phase", "mode"]
    assert history.cell_names(step["params"])[:3] == [
        "cnn train tuned",
        "cnn train as-shipped",
        "cnn infer tuned",
    ]


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
    lines = dict(trend.lines(site))
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
    steps_found = trend.steps(trend.Line([f"abacus-1.{number}" for number in range(9)], values))
    assert [(step.release, round(step.after / step.before, 2)) for step in steps_found] == [
        ("abacus-1.3", 1.2),
        ("abacus-1.6", 0.75),
    ]


# training of the CNN as JAX is shipped, in seconds: XLA used another library for convolutions from 0.9.1 on
JAX = [0.3972, 0.4378, 0.4171, 0.4082, 0.4092, 0.501, 0.541, 0.507]


def test_a_step_that_only_otava_finds_divides_the_line():
    line = trend.Line([f"jax-{number}" for number in range(8)], JAX)
    assert trend.steps(line) == []
    [step] = trend.steps(line._replace(changes=(5,)))
    assert (step.release, step.before, step.after) == ("jax-5", 0.4092, 0.507)
    assert [(level.start, level.end) for level in trend.levels(line._replace(changes=(5,)))] == [
        (0, 5),
        (5, 8),
    ]


def test_a_change_of_otava_beside_a_step_of_asv_is_the_same_step():
    line = trend.Line(TAGS, [1.0, 1.0, 2.0, 2.0])
    assert trend.steps(line._replace(changes=(3,))) == trend.steps(line)


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
    line = trend.Line(TAGS, [1.0, 1.0, 2.0, 2.0])
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


# the commands


OPTIONS = ["--task=gru", "--phase=infer", "--launches=2"]


def test_the_command_measures_releases_and_lists_them(machine, capsys):
    timed = machine(dict.fromkeys(TAGS, 1.0))
    assert entry_point.main(["releases", "run", "abacus-1.1..abacus-1.4", *OPTIONS]) == 0
    assert timed == [TAGS[1:]] * 2
    assert entry_point.main(["releases", "list", "abacus"]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.split()[:2] == ["abacus-1.1", "2024-01-01"] and "numbers" not in first
    assert second.endswith("4 numbers")


def test_tags_and_ranges_of_one_framework_are_measured_together(machine):
    timed = machine(dict.fromkeys(TAGS, 1.0))
    ranges = [TAGS[3], TAGS[0], f"{TAGS[0]}..{TAGS[1]}"]
    assert entry_point.main(["releases", "run", *ranges, *OPTIONS]) == 0
    assert timed == [[TAGS[0], TAGS[1], TAGS[3]]] * 2


def test_the_exit_code_is_three_if_the_budget_runs_out(machine):
    machine(dict.fromkeys(TAGS, 1.0))
    assert entry_point.main(["releases", "run", "abacus", *OPTIONS, "--budget=0s"]) == 3


def test_an_unknown_release_is_an_error_with_the_nearest_name(machine, capsys):
    machine({})
    assert entry_point.main(["releases", "run", "abacus-1.9", *OPTIONS]) == 2
    assert "Unknown release 'abacus-1.9'. Did you mean abacus-1." in capsys.readouterr().err


def test_a_release_that_asv_installed_is_measured_and_printed(machine, capsys):
    machine(dict.fromkeys(TAGS, 1.1))
    commit, _ = ledger.commit(TAGS[0])
    assert entry_point.main(["releases", "measure", commit, "--python", sys.executable, *OPTIONS]) == 0
    numbers = json.loads(capsys.readouterr().out)["numbers"]
    assert numbers["step"] == {CELL: pytest.approx(0.011, rel=1e-6)}
    assert entry_point.main(["releases", "measure", "abacus-9", "--python", sys.executable, *OPTIONS]) == 2


def test_nightly_measures_new_releases_and_reports_rises(machine, capsys, monkeypatch, tmp_path):
    releases = [
        Release("abacus", name, f"2024-01-0{number}T00:00:00+00:00") for number, name in enumerate(FOUR, 1)
    ]
    monkeypatch.setattr("stele.commands.releases.index.releases", lambda package, prereleases=False: releases)
    machine(dict(zip(TAGS, [1.0, 1.0, 1.2, 1.2], strict=True)))
    command = ["nightly", "abacus", *OPTIONS, f"--site={tmp_path / 'site'}"]
    assert entry_point.main(command) == 1
    out = capsys.readouterr().out
    assert "track_step gru infer tuned, abacus: +20.0 % at abacus-1.3" in out
    assert "4 releases measured, 2 steps." in out  # the first step is slower as well
    assert (tmp_path / "site" / "index.html").exists() and Path(".stele/nightly.md").exists()
    assert entry_point.main(command) == 0  # a known rise is not reported again
    assert "0 releases measured, 0 steps." in capsys.readouterr().out


def test_the_height_of_a_step_is_relative_to_the_level_before_it():
    assert (
        trend.Step("abacus-1.1", 1.0, 1.0305).height
        > trend.MIN_STEP
        > trend.Step("abacus-1.1", 1.0, 0.9705).height
    )
    assert trend.Step("abacus-1.1", 0.0, 0.1).height == math.inf


def test_the_report_is_written_to_a_page(machine, tmp_path, capsys):
    machine(dict(zip(TAGS, [1.0, 1.0, 0.8, 0.8], strict=True)))
    entry_point.main(["releases", "run", "abacus", *OPTIONS])
    page = tmp_path / "page.md"
    page.write_text("# History\n<!-- generated by: stele -->\n<!-- end of what is generated -->\n")
    assert entry_point.main(["releases", "report", f"--site={tmp_path / 'site'}", f"--write={page}"]) == 0
    step, line = [line for line in page.read_text().splitlines() if "track_step" in line]
    assert step == "- abacus-1.3: track_step gru infer tuned, abacus, -20.0 %"
    assert "| 4, abacus-1.1 to abacus-1.4 | 0.01 | 0.008 | -20.0 % | abacus-1.3 -20.0 % |" in line


def test_a_package_in_the_users_folder_does_not_shadow_asv(machine, tmp_path):
    machine(dict(zip(TAGS, [1.0, 1.0, 0.8, 0.8], strict=True)))
    entry_point.main(["releases", "run", "abacus", *OPTIONS])
    Path("asv").mkdir()
    Path("asv/__init__.py").write_text("raise SystemExit('the package of the user')")
    history.publish(tmp_path / "site")
    assert (tmp_path / "site/index.html").exists()


def test_result_files_have_the_same_names_as_asvs(machine):
    machine(dict.fromkeys(TAGS, 1.0))
    campaign.measure_releases(TAGS[:1], request())
    [path] = [path for path in history.RESULTS.glob("*/*.json") if path.name != "machine.json"]
    content = json.loads(path.read_text())
    assert content["env_name"] == history.current_place().environment
    assert content["params"]["machine"] == path.parent.name
    assert set(content["params"]) == {"machine", "os", "arch", "cpu", "num_cpu", "ram", "python"}
    value = content["results"]["recipes.track_error"][0]
    assert value is None or all(math.isnan(number) for number in value)
