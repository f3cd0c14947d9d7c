import pytest

from stele import measure
from stele.settings import Settings

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
