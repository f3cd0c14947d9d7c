"""``stele time-to-accuracy`` on environments that return scripted trainings."""

import pytest

from stele import __main__ as entry_point
from stele.measuring import measure
from tests.support.trainings import FOLDER, REAL, SYNTHETIC, printed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--price=runpod-h100-smx"], "Did you mean 'runpod-h100-sxm'?"),
        (["--price=-1"], "a price is a positive number of US dollars per hour"),
        (["--task=cifer"], "Unknown task 'cifer'"),
        (["--task=resnet50", "--scale=paper"], "generates its samples, so its accuracy has no meaning"),
        (["--scale=cpu-ful"], "Unknown scale 'cpu-ful' for task cnn"),
        (["--framework=nothing"], "nothing"),
    ],
)
def test_bad_input_is_one_message(measure_seeds, capsys, options, message):
    assert measure_seeds(*options) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


def test_a_scale_without_its_data_is_an_error_and_smoke_runs_on_synthetic_data(measure_seeds, monkeypatch, capsys):
    monkeypatch.setattr(measure, "inputs", lambda task: (SYNTHETIC, "cifar10 is synthetic: no file"))
    assert measure_seeds() == 2
    error = capsys.readouterr().err
    assert "The scale 'quick' of 'cnn' needs real data. Set STELE_DATA" in error
    assert measure_seeds(scale="smoke") == 0
    assert "synthetic data" in printed(capsys)


@pytest.mark.parametrize("text", ["94", "0", "high", "nan", "101%"])
def test_a_target_that_is_no_fraction_is_a_usage_error(measure_seeds, capsys, text):
    with pytest.raises(SystemExit) as error:
        measure_seeds(target=text)
    assert error.value.code == 2
    assert "is not an accuracy. Write it as 94% or 0.94" in capsys.readouterr().err


def test_a_task_without_a_target_asks_for_one(add_environment, monkeypatch, capsys):
    monkeypatch.setattr(measure, "inputs", lambda task: (REAL, None))
    assert entry_point.main(["time-to-accuracy", "--task=cnn", "--scale=quick", "--no-wait"]) == 2
    assert "Task 'cnn' has no target at scale quick. Add --target 60%." in capsys.readouterr().err


def test_a_task_without_an_open_division_is_an_error_before_training(measure_seeds, capsys):
    assert measure_seeds("--division=open") == 2
    assert "'fake' cannot train 'cnn': the task cnn has the closed division only" in capsys.readouterr().err
    assert not list(FOLDER.rglob("*.json"))
