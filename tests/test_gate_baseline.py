"""Baselines: what was saved can be read in a diff, what is slower fails, and what cannot be compared is named."""

import dataclasses
import json

import numpy
import pytest

from stele import __main__ as door
from stele.errors import SteleError
from stele.gate import baseline
from stele.measuring import machine

SETTINGS = {"device": "cpu", "precision": "fp32", "threads": 2, "deterministic": False, "seed": 0}
MACHINE = {"processor": "Abacus 3000", "processors": 2, "gpus": []}


def launches(run, *, times=1.0, count=8, seed=0, **changes):
    """Launches that differ by a per cent, as on a quiet machine."""
    draw = numpy.random.RandomState(seed)
    noise = numpy.exp(0.01 * draw.standard_normal(count))
    return [
        dataclasses.replace(run, seconds=tuple(times * one * value for value in run.seconds), **changes)
        for one in noise
    ]


@pytest.fixture
def kept(run, tmp_path):
    """A folder in which a baseline of eight launches was promoted."""
    baseline.save(launches(run), tmp_path)
    baseline.promote([], tmp_path)
    return tmp_path


def words(runs, folder, **margins):
    return {verdict.metric: verdict.status for verdict in baseline.compare(runs, margins, folder)}


def test_what_is_as_fast_passes(run, kept):
    found = words(launches(run, seed=1), kept)
    assert found == {"step": "PASS", "first-step": "PASS", "import": "PASS", "host-memory": "PASS"}


def test_what_is_slower_by_more_than_the_margin_regressed(run, kept):
    [step, *_] = baseline.compare(launches(run, seed=1, times=1.1), {}, kept)
    assert step.status == "REGRESSED"
    assert "slower in 8 launches, p 7.8e-05" in step.message


def test_what_is_slower_by_less_does_not(run, kept):
    assert words(launches(run, seed=1, times=1.03), kept)["step"] == "PASS"


def test_a_margin_of_ones_own_decides(run, kept):
    slower = launches(run, seed=1, times=1.03)
    assert words(slower, kept, step=0.01)["step"] == "REGRESSED"


def test_a_new_release_of_the_framework_is_compared(run, kept):
    assert words(launches(run, seed=1, versions={"torch": "2.14.0", "cuda": "13.0"}), kept)["step"] == "PASS"


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"flags": {"threads": 2, "python": "3.12.1"}},
            "flags: python differs: None in the baseline, '3.12.1' here",
        ),
        ({"scale": "paper"}, "scale differs: 'quick' in the baseline, 'paper' here"),
        ({"settings": {**SETTINGS, "threads": 4}}, "settings: threads differs: 2 in the baseline, 4 here"),
        ({"data": {"origin": "synthetic", "fingerprint": "1"}}, "data: fingerprint differs"),
        ({"machine": {**MACHINE, "processor": "Abacus 4000"}}, "machine: processor differs: 'Abacus 3000'"),
    ],
)
def test_what_differs_is_named(run, kept, changes, message):
    [verdict] = baseline.compare(launches(run, **changes), {}, kept)
    assert verdict.status == "UNKNOWN"
    assert message in verdict.message


def test_too_few_launches_are_unknown(run, kept):
    [verdict] = baseline.compare(launches(run, count=5), {}, kept)
    assert verdict.message.startswith("this session has 5 launches, at least 6 are needed")


def test_no_baseline_is_unknown_and_says_what_to_type(run, tmp_path):
    [verdict] = baseline.compare(launches(run), {}, tmp_path)
    assert "no baseline torch-cnn-train-cpu-fp32.json: save one with" in verdict.message


def test_a_candidate_is_no_baseline_until_it_is_promoted(run, tmp_path):
    baseline.save(launches(run), tmp_path)
    [verdict] = baseline.compare(launches(run), {}, tmp_path)
    assert verdict.status == "UNKNOWN"


def test_a_file_has_a_line_for_each_launch(run, kept):
    [path] = kept.glob("*/*.json")
    assert path.parent.name == machine.title(MACHINE)
    assert path.parent.name.startswith("abacus-3000-")
    lines = [line for line in path.read_text().splitlines() if '"step"' in line]
    assert len(lines) == 8
    assert set(json.loads(lines[0].rstrip(","))) >= {"when", "step", "median", "p90", "import", "host-memory"}


@pytest.mark.parametrize("content", ["", "[]", '{"schema": 9}', '{"schema": 1, "launches": [3]}'])
def test_a_damaged_baseline_is_named(run, kept, content):
    [path] = kept.glob("*/*.json")
    path.write_text(content)
    with pytest.raises(SteleError, match="torch-cnn-train-cpu-fp32.json is no baseline"):
        baseline.compare(launches(run), {}, kept)


def test_the_command_promotes_and_names_what_is_not_there(run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert door.main(["baseline", "promote"]) == 2
    assert "No candidate at all in baselines. There are: none." in capsys.readouterr().err
    baseline.save(launches(run))
    assert door.main(["baseline", "promote", "torch-gru-train"]) == 2
    assert "No candidate torch-gru-train" in capsys.readouterr().err
    assert door.main(["baseline", "promote"]) == 0
    assert capsys.readouterr().out.endswith("/torch-cnn-train-cpu-fp32.json\n")


def test_what_changes_by_the_minute_is_no_part_of_a_machine():
    facts = machine.facts()
    assert machine.title({**facts, "load": 9.0}) == machine.title(facts)
    assert machine.title({**facts, "memory": 1}) != machine.title(facts)
