import os

import numpy
import pytest

from fakes import scripted_environment
from stele.environments import ORACLE
from stele.measuring import measure
from stele.measuring.measure import SideFailed
from stele.measuring.settings import Settings
from stele_worker import tasks

SETTINGS = Settings(device="cpu", threads=1)


@pytest.fixture(autouse=True)
def offline(tmp_path, monkeypatch):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    monkeypatch.setenv("STELE_OFFLINE", "1")
    monkeypatch.delenv("STELE_DATA", raising=False)


def test_an_answer_becomes_a_run_with_the_facts_it_was_taken_under(scripted):
    plan = measure.Plan(task="cnn", phase="train", scale="quick", data=None, data_origin={"origin": "x"})
    run = measure.measure(scripted(seconds=[0.5, 0.25]), plan, SETTINGS)
    assert run.seconds == (0.5, 0.25)
    assert run.counted == (0.25,)
    assert (run.environment, run.task, run.phase, run.scale) == ("scripted", "cnn", "train", "quick")
    assert run.import_seconds == 0.5
    assert run.settings["threads"] == 1
    assert run.machine["processors"] >= 1
    assert run.plan["warmup"] == measure.WARMUP["quick"]


def test_progress_is_passed_on(scripted):
    plan = measure.Plan(task="cnn", phase="train", scale="quick", data=None, data_origin={"origin": "x"})
    seen = []
    worker = scripted(train="progress")
    with pytest.raises(Exception, match="batch"):  # the script's result is empty, and that is no Run
        measure.measure(worker, plan, SETTINGS, progress=seen.append)
    assert len(seen) == 3


def test_a_task_without_data_makes_its_own():
    fields, notice = measure.inputs("resnet50")
    assert fields["data"] is None
    assert fields["data_origin"]["origin"] == "seeded noise"
    assert notice is None


@pytest.fixture
def sides(tmp_path):
    """What became of two oracles, or of an oracle beside a worker that does something else, on short messages."""
    size = tasks.make("gru", "smoke").test
    arrays = {"test_x": numpy.full((size, 5), 7, numpy.int32), "test_y": numpy.zeros(size, numpy.int32)}
    paths = {key: str(tmp_path / f"{key}.npy") for key in arrays}
    for key, array in arrays.items():
        numpy.save(paths[key], array)
    plan = measure.Plan(task="gru", phase="infer", scale="smoke", data=paths, data_origin={"origin": "x"})

    def sides(other, **asked):
        return measure.side_by_side({"a": ORACLE, "b": other}, plan, SETTINGS, **asked)

    return sides


def test_what_is_timed_takes_turns_on_one_processor(sides):
    runs = sides(ORACLE)
    assert [run.plan["turn"] for run in runs.values()] == [1, 1]
    assert runs["a"].flags["processors"] == runs["b"].flags["processors"]


@pytest.mark.skipif(not measure.room(2, 1), reason="one processor")
def test_what_is_not_timed_has_processors_of_its_own(sides):
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


def test_where_processors_are_few_what_is_not_timed_comes_one_after_the_other(sides, monkeypatch):
    monkeypatch.setattr(measure, "room", lambda sides, threads: False)
    runs = sides(ORACLE, timed=False)
    assert list(runs) == ["a", "b"]
    assert runs["a"].when < runs["b"].when
