import contextlib
import dataclasses
import os
import threading

import numpy
import pytest

from stele.environments import ORACLE
from stele.errors import SteleError
from stele.measuring import conditions, measure, processors
from stele.measuring.measure import SideFailed
from stele.measuring.run import Origin
from stele.measuring.settings import Settings
from stele.measuring.worker import WorkerError
from stele_suite import tasks
from stele_worker.protocol import TIME_TO_ACCURACY, VERSION
from tests.support.scripted_environments import scripted_environment

ORIGIN = Origin(origin="x", fingerprint="0")
SETTINGS = Settings(device="cpu", threads=1)


@pytest.fixture(autouse=True)
def offline(tmp_path, monkeypatch):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    monkeypatch.setenv("STELE_OFFLINE", "1")
    monkeypatch.delenv("STELE_DATA", raising=False)


def test_an_answer_becomes_a_run_with_the_facts_of_the_measurement(scripted):
    plan = measure.Plan(task="cnn", phase="train", scale="quick", data=None, data_origin=ORIGIN)
    run = measure.measure(scripted(seconds=[0.5, 0.25]), plan, SETTINGS)
    assert run.steps.seconds == (0.5, 0.25)
    assert run.counted_seconds == (0.25,)
    assert (run.environment, run.task, run.phase, run.scale) == ("scripted", "cnn", "train", "quick")
    assert run.framework.import_seconds == 0.5
    assert run.settings.threads == 1
    assert run.machine.processors >= 1
    assert run.options.warmup == measure.WARMUP["quick"]


def test_a_run_has_the_conditions_of_its_launch(scripted, monkeypatch):
    states = iter([{"cpu": (0.0, 0.0, 0.0)}, {"cpu": (3.0, 1.0, 0.0)}])
    monkeypatch.setattr(conditions, "processor_times", lambda: next(states))
    plan = measure.Plan(task="cnn", phase="train", scale="quick", data=None, data_origin=ORIGIN)
    run = measure.measure(scripted(seconds=[0.5, 0.25]), plan, SETTINGS)
    assert run.conditions is not None
    assert 0.5 < run.conditions.foreign <= 0.75
    assert run.conditions.steal is None


@pytest.mark.slow
def test_a_launch_of_several_sides_has_no_separate_conditions(sides):
    assert [run.conditions for run in sides(ORACLE).values()] == [None, None]


@pytest.mark.parametrize("version", [3, 99, None, "4"])
def test_a_worker_with_another_version_of_the_protocol_is_an_error_that_names_both(scripted, version):
    worker = scripted(seconds=[0.5, 0.25], protocol=version)
    message = f"Worker 'scripted' uses version {version!r} of the protocol, but Stele uses version {VERSION}"
    with pytest.raises(SteleError, match=message) as failure:
        measure.configure(worker, SETTINGS)
    assert not isinstance(failure.value, WorkerError)  # a gate would count it against NEW


def test_progress_is_reported_to_the_caller(scripted):
    plan = measure.Plan(task="cnn", phase="train", scale="quick", data=None, data_origin=ORIGIN)
    reports = []
    worker = scripted(train="progress")
    with pytest.raises(Exception, match="steps"):  # the result of the script is empty, so it is not a Run
        measure.measure(worker, plan, SETTINGS, progress=reports.append)
    assert len(reports) == 3


@pytest.mark.slow
def test_data_is_searched_once_in_a_process_and_again_in_another_folder(monkeypatch, tmp_path):
    """A download that a firewall drops takes seconds, and a gate has hundreds of launches."""
    searches = []
    load = measure.data.load
    monkeypatch.setattr(measure.data, "load", lambda name, where: searches.append(name) or load(name, where))
    fields, notice = measure.inputs("gru")
    assert "synthetic" in notice
    fields["data"].clear()  # a caller may change what it got
    assert measure.inputs("gru")[0]["data"]
    assert searches == ["imdb"]
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "other"))
    measure.inputs("gru")
    assert searches == ["imdb", "imdb"]


def test_a_task_without_a_data_set_uses_noise():
    fields, notice = measure.inputs("resnet50")
    assert fields["data"] is None
    assert fields["data_origin"].origin == "seeded noise"
    assert notice is None


def test_generated_samples_with_a_meaning_are_synthetic_data():
    assert measure.inputs("densenet121")[0]["data_origin"].origin == "synthetic"


@pytest.fixture
def sides(tmp_path):
    """sides(environment) -> the Runs of the oracle and of this environment, measured side by side on small data."""
    size = tasks.make("gru", "smoke").test
    arrays = {"test_x": numpy.full((size, 5), 7, numpy.int32), "test_y": numpy.zeros(size, numpy.int32)}
    paths = {key: str(tmp_path / f"{key}.npy") for key in arrays}
    for key, array in arrays.items():
        numpy.save(paths[key], array)
    plan = measure.Plan(task="gru", phase="infer", scale="smoke", data=paths, data_origin=ORIGIN)

    def sides(other, *, groups=None):
        if groups is None:
            return measure.side_by_side({"a": ORACLE, "b": other}, plan, SETTINGS)
        lanes = measure.measure_lanes([{"a": ORACLE}, {"b": other}], [plan], SETTINGS, groups=groups)
        return {side: run for lane in lanes for side, [run] in lane.items()}

    return sides


def test_timed_sides_take_turns_on_one_processor(sides):
    runs = sides(ORACLE)
    assert [run.options.turn for run in runs.values()] == [1, 1]
    assert runs["a"].framework.flags["processors"] == runs["b"].framework.flags["processors"]


LANES = processors.lanes(1, of=processors.usable())


@pytest.mark.skipif(len(LANES) < 2, reason="needs two processors")
def test_lanes_use_separate_processors(sides):
    before = os.sched_getaffinity(0)
    runs = sides(ORACLE, groups=LANES)
    assert [run.options.turn for run in runs.values()] == [None, None]
    assert [run.framework.flags["processors"] for run in runs.values()] == LANES[:2]
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize("groups", [None, LANES[:1] * 2], ids=["turns", "lanes"])
def test_the_side_that_failed_is_named(sides, groups):
    with pytest.raises(SideFailed) as failure:
        sides(scripted_environment({"infer": "segfault"}), groups=groups)
    assert (failure.value.side, failure.value.lane) == ("b", 0 if groups is None else 1)


class Turns(dict):
    """A plan that says how many turns each side has."""

    program, phase = "tests", "benchmark"


@pytest.fixture
def steps(monkeypatch):
    """The turns of sides whose plan says how many they have, and how many workers there are during each."""
    turns, workers, everyone = [], [], threading.Barrier(2, timeout=30)

    @contextlib.contextmanager
    def launch(*_, name, **__):
        workers.append(name)
        yield name.removeprefix("side-")[0]
        workers.remove(name)

    def measure_steps(side, plans, settings, *, turn, together):
        for plan in plans:
            for number in range(plan[side]):
                if together and number < 2:
                    everyone.wait()  # for all sides; this fails if one of them waits for its turn
                turns.append((side, number, len(workers)))
                yield
            yield side

    monkeypatch.setattr(measure, "launch", launch)
    monkeypatch.setattr(measure, "measure_steps", measure_steps)
    monkeypatch.setattr(measure, "with_content", lambda runs, *_: tuple(runs))
    return turns


def test_lanes_wait_for_each_other_after_every_turn(steps):
    """So every step of one lane has the same company in the other."""
    lanes, groups = [{"a": ORACLE}, {"b": ORACLE}], [processors.usable()[:1]] * 2
    runs = measure.measure_lanes(lanes, [Turns(a=2, b=4)], SETTINGS, groups=groups)
    assert runs == [{"a": ("a",)}, {"b": ("b",)}]
    assert sorted(steps[:2]) == [("a", 0, 2), ("b", 0, 2)] and sorted(steps[2:4]) == [("a", 1, 2), ("b", 1, 2)]
    assert steps[4:] == [("b", 2, 2), ("b", 3, 2)]


def test_a_plan_starts_when_all_sides_have_ended_the_one_before(steps):
    [runs] = measure.measure_lanes([{"a": ORACLE, "b": ORACLE}], [Turns(a=1, b=2), Turns(a=1, b=1)], SETTINGS)
    assert runs == {"a": ("a", "a"), "b": ("b", "b")}
    assert steps == [("a", 0, 2), ("b", 0, 2), ("b", 1, 2), ("a", 0, 2), ("b", 0, 2)]


def test_the_sides_of_a_lane_take_turns_until_each_has_ended(steps):
    assert measure.side_by_side({"a": ORACLE, "b": ORACLE}, Turns(a=1, b=3), SETTINGS) == {"a": "a", "b": "b"}
    assert steps == [("a", 0, 2), ("b", 0, 2), ("b", 1, 2), ("b", 2, 2)]


@pytest.mark.skipif(processors.usage() is None, reason="the system does not say how long a process waits")
def test_the_sides_of_a_lane_import_and_make_the_first_step_at_the_same_time(steps):
    plan = Turns(a=3, b=4)
    plan.program, plan.phase = None, "infer"
    assert measure.side_by_side({"a": ORACLE, "b": ORACLE}, plan, SETTINGS) == {"a": "a", "b": "b"}
    assert sorted(steps[:2]) == [("a", 0, 2), ("b", 0, 2)] and sorted(steps[2:4]) == [("a", 1, 2), ("b", 1, 2)]
    assert steps[4:] == [("a", 2, 2), ("b", 2, 2), ("b", 3, 2)]


@pytest.mark.skipif(processors.usage() is None, reason="the system does not say how long a process waits")
def test_a_run_says_whether_it_shared_the_processor(sides):
    assert all(run.options.together for run in sides(ORACLE).values())
    assert not any(run.options.together for run in sides(ORACLE, groups=LANES[:1] * 2).values())


@pytest.mark.parametrize(
    ("other", "program", "settings"),
    [
        (ORACLE, "command", SETTINGS),  # commands may use the same files
        (ORACLE, None, dataclasses.replace(SETTINGS, threads=2)),
        (ORACLE, None, dataclasses.replace(SETTINGS, device="cuda")),
        (dataclasses.replace(ORACLE, command=("Rscript", "worker.R")), None, SETTINGS),
    ],
)
def test_not_all_sides_can_share_a_processor(other, program, settings):
    assert not measure.can_share((ORACLE, other), program, settings)


@pytest.mark.parametrize(
    ("lanes", "phase"), [([{"a": ORACLE}, {"b": ORACLE}], "infer"), ([{"a": ORACLE, "b": ORACLE}], TIME_TO_ACCURACY)]
)
def test_sides_with_processors_of_their_own_and_trainings_share_none(steps, lanes, phase):
    plan = Turns(a=1, b=2)
    plan.program, plan.phase = None, phase
    measure.measure_lanes(lanes, [plan], SETTINGS, groups=LANES[:1] * len(lanes))
    assert len(steps) == 3  # a barrier for both sides would have ended with an error


def test_launches_on_a_gpu_run_one_after_the_other(steps):
    on_gpu = Settings(device="cuda", threads=1)
    assert measure.side_by_side({"a": ORACLE, "b": ORACLE}, Turns(a=2, b=1), on_gpu) == {"a": "a", "b": "b"}
    assert steps == [("a", 0, 1), ("a", 1, 1), ("b", 0, 1)]


def test_lanes_without_processors_of_their_own_run_one_after_the_other(steps):
    lanes = [{"a": ORACLE}, {"b": ORACLE}]
    assert measure.measure_lanes(lanes, [Turns(a=2, b=1)], SETTINGS) == [{"a": ("a",)}, {"b": ("b",)}]
    assert steps == [("a", 0, 1), ("a", 1, 1), ("b", 0, 1)]
