"""The page of the overhead of an operation (studies/operators.py), without the frameworks."""

import sys
from pathlib import Path

import pytest

from stele import environments
from stele.measuring.settings import Settings
from tests.support import scripts
from tests.support.runs import changed

FOLDER = Path(__file__).parents[2] / "studies"
OPERATIONS, OVERHEAD, WORK = 200, 2e-6, 1e-10  # seconds of an operation, and of a number
NEARLY = {"rel": 1e-3}  # the work on one number
SETTINGS = Settings(device="cpu", threads=2)


@pytest.fixture
def script(monkeypatch):
    """studies/operators.py under a name of its own: "operators" is the name of other modules as well."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    return scripts.load(FOLDER / "operators.py", "operators_page")


@pytest.fixture
def make_run(run):
    """Return make_run(width, dispatch, overhead): a launch whose operator events take ``dispatch`` beside the work.

    Without ``dispatch``, the profiler shows no operations.
    """

    def make_run(width, dispatch, overhead=OVERHEAD):
        seconds = OPERATIONS * (overhead + WORK * width)
        events = {} if dispatch is None else {"mul": [OPERATIONS * (dispatch + WORK * width), 200.0]}
        profile = {"step": 9.0, "operations": events, "kernels": {}}
        return changed(run, profile=profile, steps={"seconds": (9.0, *[seconds] * 20), "warmup": 1})

    return make_run


@pytest.fixture
def launches(script, make_run):
    """Return launches(dispatch): three launches at each width."""
    return lambda dispatch: {width: [make_run(width, dispatch)] * 3 for width in script.WIDTHS}


def test_dispatch_in_the_events_of_a_profiler_is_not_busy_time(script, launches):
    slow_profiler = 5 * OVERHEAD
    for dispatch in (0.5 * OVERHEAD, slow_profiler):
        found = script.beside_kernels(launches(dispatch), kernels_only=False)
        assert found == pytest.approx(OPERATIONS * OVERHEAD, **NEARLY)


def test_events_of_kernels_are_busy_time_as_they_are(script, launches):
    found = script.beside_kernels(launches(0.25 * OVERHEAD), kernels_only=True)
    assert found == pytest.approx(OPERATIONS * 0.75 * OVERHEAD, **NEARLY)


def test_a_cost_that_grows_outside_of_the_operations_is_overhead(script, launches, make_run):
    runs = launches(OVERHEAD)
    runs[script.WIDE] = [make_run(script.WIDE, OVERHEAD, overhead=3 * OVERHEAD)] * 3
    assert script.beside_kernels(runs, kernels_only=False) == pytest.approx(3 * OPERATIONS * OVERHEAD, **NEARLY)


def test_one_launch_that_was_disturbed_does_not_count(script, launches, make_run):
    runs = launches(OVERHEAD)
    runs[script.WIDE][1] = make_run(script.WIDE, 50 * OVERHEAD)
    assert script.beside_kernels(runs, kernels_only=False) == pytest.approx(OPERATIONS * OVERHEAD, **NEARLY)


def test_a_profile_without_operations_has_no_result(script, launches):
    assert script.beside_kernels(launches(None), kernels_only=False) is None
    assert script.beside_kernels(launches(None), kernels_only=True) is None


@pytest.mark.parametrize(
    "ways, judged",
    [
        ((2.0, 2.5, 3.0), "yes"),
        ((2.0, 2.0, 3.1), "no: 1.6 times"),
        ((2.0, 2.0, 1.0), "no: 2.0 times"),
        ((2.0, 3.1, 2.5), "no: 1.6 times"),
        ((2.0, 2.0, -0.1), "no: a difference is not positive"),
        ((2.0, 2.0, None), "yes; the profiler shows no operations"),
        ((2.0, 4.0, None), "no: 2.0 times; the profiler shows no operations"),
    ],
)
def test_all_three_ways_must_be_within_the_band(script, ways, judged):
    assert script.agreement(ways) == judged


def test_only_the_two_widths_that_are_compared_are_profiled_and_only_in_inference(script):
    asked = {
        (phase, width): script.make_plan(phase, width).options.profile
        for phase in ("infer", "train")
        for width in script.WIDTHS
    }
    assert [key for key, fields in asked.items() if fields] == [("infer", 1), ("infer", 4096)]


def test_the_profiler_of_keras_is_that_of_its_backend(script):
    known = environments.described()
    assert [script.library(known[name]) for name in ("keras-jax", "keras-torch", "jax-op-by-op", "paddle")] == [
        "jax",
        "torch",
        "jax",
        "paddle",
    ]


def row(script, monkeypatch, make_run, name, dispatch):
    """Return the row of an environment whose launches are ``make_run``."""

    def side_by_side(sides, plan, settings):
        [side] = sides
        return {side: make_run(int(plan.scale.partition("-")[2]), dispatch)}

    monkeypatch.setattr(script.measure, "side_by_side", side_by_side)
    return script.row(environments.described()[name], SETTINGS, count=2)


def test_a_row_has_the_three_ways_training_and_their_agreement(script, monkeypatch, make_run):
    found = row(script, monkeypatch, make_run, "torch", OVERHEAD)
    assert found == ["torch", "eager", "2.00", "2.00", "2.00", "2.00", "yes"]
    assert len(found) == len(script.HEADER)


def test_the_events_of_jax_are_busy_time_as_they_are(script, monkeypatch, make_run):
    found = row(script, monkeypatch, make_run, "keras-jax", 0.5 * OVERHEAD)
    assert found[2:] == ["2.00", "2.00", "1.00", "2.00", "no: 2.0 times"]


def test_a_row_without_operations_has_an_empty_cell(script, monkeypatch, make_run):
    found = row(script, monkeypatch, make_run, "tensorflow-eager", None)
    assert found[2:] == ["2.00", "2.00", "", "2.00", "yes; the profiler shows no operations"]


@pytest.fixture
def measured(script, monkeypatch, tmp_path):
    """Return measured(*names): measure these environments without a launch. jax-op-by-op fails."""
    monkeypatch.setattr(script, "FILE", tmp_path / "folder/operators.jsonl")
    known = environments.described()
    asked = []

    def row(environment, settings, count):
        asked.append(environment.name)
        if environment.name == "jax-op-by-op":
            raise script.measure.SideFailed(environment.name, ValueError("out of memory\nmore"))
        return [environment.name, "a mode", "2.00", "2.00", "2.00", "9.00", "yes"]

    def measured(*names):
        monkeypatch.setattr(script, "environments_with", lambda *_: [known[name] for name in names])
        script.measure_all(None, count=1)
        return asked

    monkeypatch.setattr(script, "row", row)
    return measured


def test_what_is_stored_is_not_measured_again(measured):
    assert measured("torch") == ["torch"]
    assert measured("jax-op-by-op", "torch") == ["torch", "jax-op-by-op"]


def test_the_page_has_every_stored_row_and_says_where_it_was_measured(script, measured):
    measured("torch", "jax-op-by-op", "jax")
    _, _, first, second, third, _, where = script.markdown().splitlines()
    assert first == "| jax | a mode | 2.00 | 2.00 | 2.00 | 9.00 | yes |"
    assert second == "| jax-op-by-op | op by op | failed |  |  |  | out of memory |"
    assert third.startswith("| torch |") and where.startswith("Measured 20")
