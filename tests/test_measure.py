import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest

from fakes import scripted_environment
from stele.environments import ORACLE
from stele.errors import SteleError
from stele.measuring import conditions, measure, processors
from stele.measuring.measure import SideFailed
from stele.measuring.settings import Settings
from stele.measuring.worker import WorkerError
from stele_worker import tasks
from stele_worker.protocol import VERSION

SETTINGS = Settings(device="cpu", threads=1)


@pytest.fixture(autouse=True)
def offline(tmp_path, monkeypatch):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    monkeypatch.setenv("STELE_OFFLINE", "1")
    monkeypatch.delenv("STELE_DATA", raising=False)


def test_an_answer_becomes_a_run_with_the_facts_of_the_measurement(scripted):
    plan = measure.Plan(task="cnn", phase="train", scale="quick", data=None, data_origin={"origin": "x"})
    run = measure.measure(scripted(seconds=[0.5, 0.25]), plan, SETTINGS)
    assert run.seconds == (0.5, 0.25)
    assert run.counted_seconds == (0.25,)
    assert (run.environment, run.task, run.phase, run.scale) == ("scripted", "cnn", "train", "quick")
    assert run.import_seconds == 0.5
    assert run.settings["threads"] == 1
    assert run.machine["processors"] >= 1
    assert run.plan["warmup"] == measure.WARMUP["quick"]


def test_a_run_has_the_conditions_of_its_launch(scripted, monkeypatch):
    states = iter([{"cpu": (0.0, 0.0, 0.0)}, {"cpu": (3.0, 1.0, 0.0)}])
    monkeypatch.setattr(conditions, "processor_times", lambda: next(states))
    plan = measure.Plan(task="cnn", phase="train", scale="quick", data=None, data_origin={"origin": "x"})
    run = measure.measure(scripted(seconds=[0.5, 0.25]), plan, SETTINGS)
    assert run.conditions is not None
    assert 0.5 < run.conditions["foreign"] <= 0.75
    assert run.conditions["steal"] is None


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
    plan = measure.Plan(task="cnn", phase="train", scale="quick", data=None, data_origin={"origin": "x"})
    reports = []
    worker = scripted(train="progress")
    with pytest.raises(Exception, match="batch"):  # the result of the script is empty, so it is not a Run
        measure.measure(worker, plan, SETTINGS, progress=reports.append)
    assert len(reports) == 3


def test_data_is_searched_once_in_a_process_and_again_in_another_folder(monkeypatch, tmp_path):
    """A download that a firewall drops takes seconds, and a gate has hundreds of launches."""
    searches = []
    load = measure.data.load
    monkeypatch.setattr(measure.data, "load", lambda name: searches.append(name) or load(name))
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
    assert fields["data_origin"]["origin"] == "seeded noise"
    assert notice is None


def test_generated_samples_with_a_meaning_are_synthetic_data():
    assert measure.inputs("densenet121")[0]["data_origin"]["origin"] == "synthetic"


@pytest.fixture
def sides(tmp_path):
    """sides(environment) -> the Runs of the oracle and of this environment, measured side by side on small data."""
    size = tasks.make("gru", "smoke").test
    arrays = {"test_x": numpy.full((size, 5), 7, numpy.int32), "test_y": numpy.zeros(size, numpy.int32)}
    paths = {key: str(tmp_path / f"{key}.npy") for key in arrays}
    for key, array in arrays.items():
        numpy.save(paths[key], array)
    plan = measure.Plan(task="gru", phase="infer", scale="smoke", data=paths, data_origin={"origin": "x"})

    def sides(other, *, groups=None):
        if groups is None:
            return measure.side_by_side({"a": ORACLE, "b": other}, plan, SETTINGS)
        first, second = measure.at_once([{"a": ORACLE}, {"b": other}], plan, SETTINGS, groups=groups)
        return {**first, **second}

    return sides


def test_timed_sides_take_turns_on_one_processor(sides):
    runs = sides(ORACLE)
    assert [run.plan["turn"] for run in runs.values()] == [1, 1]
    assert runs["a"].flags["processors"] == runs["b"].flags["processors"]


LANES = processors.lanes(1, of=processors.usable())


@pytest.mark.skipif(len(LANES) < 2, reason="needs two processors")
def test_lanes_use_separate_processors(sides):
    before = os.sched_getaffinity(0)
    runs = sides(ORACLE, groups=LANES)
    assert [run.plan["turn"] for run in runs.values()] == [None, None]
    assert [run.flags["processors"] for run in runs.values()] == LANES[:2]
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize("groups", [None, LANES[:1] * 2], ids=["turns", "lanes"])
def test_the_side_that_failed_is_named(sides, groups):
    with pytest.raises(SideFailed) as failure:
        sides(scripted_environment({"infer": "segfault"}), groups=groups)
    assert (failure.value.side, failure.value.lane) == ("b", 0 if groups is None else 1)


def test_lanes_wait_for_each_other_after_every_turn():
    """So every step of one lane has the same company in the other."""
    turns, both = [], threading.Barrier(2, timeout=10)

    def lane(name, count):
        for number in range(count):
            if number < 2:
                both.wait()  # ends only if the other lane is in the same turn
            turns.append((name, number))
            yield
        return name

    with ThreadPoolExecutor(2) as threads:
        assert measure.run_together([lane("a", 2), lane("b", 4)], threads) == ["a", "b"]
    assert sorted(turns[:4]) == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    assert turns[4:] == [("b", 2), ("b", 3)]
