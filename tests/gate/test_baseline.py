"""Baselines: the file is readable in a diff, a slower metric fails, and the reason for UNKNOWN is named."""

import json

import numpy
import pytest

from stele.errors import SteleError
from stele.gate import baseline
from stele.measuring import machine
from tests.support.gate_records import MACHINE, SETTINGS
from tests.support.runs import changed


def launches(run, *, times=1.0, count=8, seed=0, **changes):
    """Return launches that differ by one per cent, as on a quiet machine."""
    draw = numpy.random.RandomState(seed)
    noise = numpy.exp(0.01 * draw.standard_normal(count))
    return [
        changed(run, **changes, steps={"seconds": tuple(times * factor * value for value in run.steps.seconds)})
        for factor in noise.tolist()
    ]


@pytest.fixture
def folder(run, tmp_path):
    """A folder with a promoted baseline of eight launches."""
    baseline.save(launches(run), tmp_path)
    baseline.promote([], tmp_path)
    return tmp_path


def compare(runs, folder, tolerances=(), margins=()):
    return baseline.compare(runs, tolerances=dict(tolerances), margins=dict(margins), folder=folder)


def statuses(runs, folder, **tolerances):
    return {verdict.metric: verdict.status for verdict in compare(runs, folder, tolerances)}


def test_equal_launches_pass(run, folder):
    assert statuses(launches(run, seed=1), folder) == {
        "step": "PASS",
        "first-step": "PASS",
        "import": "PASS",
        "host-memory": "PASS",
    }


def test_a_slow_down_above_the_margin_is_a_regression(run, folder):
    [step, *_] = compare(launches(run, seed=1, times=1.1), folder)
    assert step.status == "REGRESSED"
    assert "slower in 8 launches, p 7.8e-05" in step.message


def test_a_slow_down_below_the_margin_passes(run, folder):
    assert statuses(launches(run, seed=1, times=1.03), folder)["step"] == "PASS"


def test_a_tolerance_can_be_set_for_each_metric(run, folder):
    slower = launches(run, seed=1, times=1.03)
    assert statuses(slower, folder, step=0.01)["step"] == "REGRESSED"


def test_a_new_release_of_the_framework_is_compared(run, folder):
    new = {
        "versions": {"torch": "2.14.0", "cuda": "13.0"},
        "content": {"code": "1", "packages": "1", "installed": "1"},
    }
    assert statuses(launches(run, seed=1, **new), folder)["step"] == "PASS"


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"framework": {"flags": {"threads": 2, "python": "3.12.1"}}},
            "flags: python differs: None in the baseline, '3.12.1' here",
        ),
        ({"scale": "paper"}, "scale differs: 'quick' in the baseline, 'paper' here"),
        (
            {"settings": {**SETTINGS, "malloc": "plain", "threads": 4}},
            "settings: threads differs: 2 in the baseline, 4 here",
        ),
        ({"data": {"origin": "synthetic", "fingerprint": "1"}}, "data: fingerprint differs"),
        ({"content": {"code": "0"}}, "content: code differs: '1' in the baseline, '0' here"),
        ({"content": {"code": "1", "files": "0"}}, "content: files differs"),
        ({"content": {"code": "1", "options": "0"}}, "content: options differs"),
        ({"content": None}, "what decided the launches was not recorded"),
        ({"machine": {**MACHINE, "processor": "Abacus 4000"}}, "machine: processor differs: 'Abacus 3000'"),
    ],
)
def test_an_unknown_verdict_names_the_fact_that_differs(run, folder, changes, message):
    [verdict] = compare(launches(run, **changes), folder)
    assert verdict.status == "UNKNOWN"
    assert message in verdict.message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"code": "1", "files": "0"}, "the files of the model changed between them"),
        ({"code": "2"}, "Stele itself changed between them"),
        (None, "what decided the launches was not recorded"),
    ],
)
def test_launches_of_different_contents_are_no_baseline_and_are_not_compared(run, folder, content, message):
    *first, last = launches(run)
    runs = [*first, changed(last, content=content)]
    [verdict] = compare(runs, folder)
    assert verdict.status == "UNKNOWN" and message in verdict.message
    with pytest.raises(SteleError, match="The launches of a baseline cannot be compared"):
        baseline.save(runs, folder)


def test_too_few_launches_are_unknown(run, folder):
    [verdict] = compare(launches(run, count=5), folder)
    assert verdict.message.startswith("this session has 5 launches, at least 6 are needed")


def test_a_candidate_is_not_a_baseline_before_it_is_promoted(run, tmp_path):
    baseline.save(launches(run), tmp_path)
    [verdict] = compare(launches(run), tmp_path)
    assert verdict.status == "UNKNOWN"


def test_a_file_has_a_line_for_each_launch(run, folder):
    [path] = folder.glob("*/*.json")
    assert path.parent.name == machine.name_of(run.machine)
    assert path.parent.name.startswith("abacus-3000-")
    lines = [line for line in path.read_text().splitlines() if '"step"' in line]
    assert len(lines) == 8
    assert set(json.loads(lines[0].rstrip(","))) >= {"when", "step", "median", "p90", "import", "host-memory"}


@pytest.mark.parametrize("content", ["", "[]", '{"schema": 9}', '{"schema": 1, "launches": [3]}'])
def test_the_error_names_a_damaged_baseline(run, folder, content):
    [path] = folder.glob("*/*.json")
    path.write_text(content)
    with pytest.raises(SteleError, match="torch-cnn-train-cpu-fp32.json is not a baseline"):
        compare(launches(run), folder)
