import os

import numpy
import pytest

from fakes import scripted_environment
from stele.environments import ORACLE
from stele.errors import SteleError
from stele.measuring import conditions, measure
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


@pytest.fixture
def sides(tmp_path):
    """sides(environment) -> the Runs of the oracle and of this environment, measured side by side on small data."""
    size = tasks.make("gru", "smoke").test
    arrays = {"test_x": numpy.full((size, 5), 7, numpy.int32), "test_y": numpy.zeros(size, numpy.int32)}
    paths = {key: str(tmp_path / f"{key}.npy") for key in arrays}
    for key, array in arrays.items():
        numpy.save(paths[key], array)
    plan = measure.Plan(task="gru", phase="infer", scale="smoke", data=paths, data_origin={"origin": "x"})

    def sides(other, **options):
        return measure.side_by_side({"a": ORACLE, "b": other}, plan, SETTINGS, **options)

    return sides


def test_timed_sides_take_turns_on_one_processor(sides):
    runs = sides(ORACLE)
    assert [run.plan["turn"] for run in runs.values()] == [1, 1]
    assert runs["a"].flags["processors"] == runs["b"].flags["processors"]


@pytest.mark.skipif(not measure.has_processors_for(2, 1), reason="needs two processors")
def test_sides_that_are_not_timed_use_separate_processors(sides):
    before = os.sched_getaffinity(0)
    runs = sides(ORACLE, timed=False)
    assert [run.plan["turn"] for run in runs.values()] == [None, None]
    assert not set(runs["a"].flags["processors"]) & set(runs["b"].flags["processors"])
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize("timed", [True, False])
def test_the_side_that_failed_is_named(sides, timed):
    with pytest.raises(SideFailed) as failure:
        sides(scripted_environment({"infer": "segfault"}), timed=timed)
    assert failure.value.side == "b"


def test_with_too_few_processors_the_sides_run_one_after_the_other(sides, monkeypatch):
    monkeypatch.setattr(measure, "has_processors_for", lambda sides, threads: False)
    runs = sides(ORACLE, timed=False)
    assert list(runs) == ["a", "b"]
    assert runs["a"].when < runs["b"].when
