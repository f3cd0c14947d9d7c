"""A training as the log of MLPerf, which MLPerf's checker accepts."""

import importlib
import json
import re
from pathlib import Path

import pytest

from stele.errors import SteleError
from stele.report import mlperf
from tests.support.runs import changed, to_training

TARGET, HOUR = 0.6, 3600


@pytest.fixture
def training(run):
    """A training of two epochs of 36 s, with evaluations of 4 s, 3.6 s for the data, and 60 s of compilation."""
    epochs = {
        "accuracies": [0.5, 0.65],
        "evaluation_seconds": [4.0, 4.0],
        "compile_seconds": 60.0,
        "data_seconds": 3.6,
        "elapsed": 60.0 + 3.6 + 80.0,
    }
    steps, learning = {"seconds": [36.0, 36.0]}, {"accuracy": 0.65}
    return to_training(run, settings={"malloc": "steady"}, steps=steps, learning=learning, epochs=epochs)


# MLPerf


RULES = "5.1.0"  # later ones ask how a language model is divided among GPUs


def check(path, folder):
    """Return what MLPerf's checker says about a log. Its list of benchmarks gets the task, which it does not know."""
    compliance = importlib.import_module("mlperf_logging.compliance_checker.mlp_compliance")
    rules = Path(compliance.__file__).parent / f"training_{RULES}"
    checker = compliance.make_checker("training", RULES, quiet=False, werror=True)
    for name in ("common.yaml", "closed_common.yaml"):
        text = (rules / name).read_text().replace("in ['retinanet'", "in ['cnn', 'retinanet'")
        alone = re.sub(r"enqueue_config\(.*?\)\) ?;?", "", text)  # no rules for this benchmark alone
        (folder / name).write_text(alone)
        checker.check_file(str(path), str(folder / name))
    return [*checker.not_overwritable, *checker.overwritable.values(), *checker.warnings.values()]


@pytest.fixture
def log(training, tmp_path):
    """log() -> the path of the log of the training."""
    pytest.importorskip("mlperf_logging", reason="needs mlperf-logging: pip install pytest-stele[mlperf]")

    def log(run=training, target=TARGET):
        mlperf.write_log(tmp_path / "result_0.txt", run, target)
        return tmp_path / "result_0.txt"

    return log


def events(path):
    return [json.loads(line.partition(" ")[2]) for line in path.read_text().splitlines()]


def test_mlperfs_checker_accepts_the_log(log, tmp_path):
    assert check(log(), tmp_path) == []


def test_mlperfs_checker_notices_a_log_without_the_end_of_the_run(log, tmp_path):
    path = log()
    path.write_text("\n".join(line for line in path.read_text().splitlines() if '"run_stop"' not in line))
    assert any("run_stop" in message for message in check(path, tmp_path))


def test_the_run_starts_after_compilation_and_lasts_as_long_as_mlperf_counts(log):
    times = {event["key"]: event["time_ms"] for event in events(log())}
    assert times["init_stop"] - times["init_start"] == 60_000
    assert times["run_stop"] - times["run_start"] == 83_600


def test_epochs_and_evaluations_have_their_durations_and_accuracies(log):
    keys = ("epoch_start", "epoch_stop", "eval_start", "eval_stop", "eval_accuracy")
    shown = [event for event in events(log()) if event["key"] in keys]
    first = {event["key"]: event for event in shown if event["metadata"]["epoch_num"] == 1}
    assert first["epoch_stop"]["time_ms"] - first["epoch_start"]["time_ms"] == 36_000
    assert first["eval_stop"]["time_ms"] - first["eval_start"]["time_ms"] == 4_000
    assert [event["value"] for event in shown if event["key"] == "eval_accuracy"] == [0.5, 0.65]


def test_the_status_says_whether_the_last_epoch_reached_the_target(log):
    def status(path):
        return next(event["metadata"]["status"] for event in events(path) if event["key"] == "run_stop")

    assert status(log()) == "success"
    assert status(log(target=0.66)) == "aborted"


def test_other_epochs_than_those_of_the_task_are_in_the_open_division(log, training):
    def division(run):
        return next(event["value"] for event in events(log(run)) if event["key"] == "submission_division")

    assert division(training) == "closed"
    assert division(changed(training, options={"epochs": 3})) == "open"
    assert division(changed(training, options={"division": "open"})) == "open"


def test_the_log_names_no_folder_of_this_machine(log):
    assert str(Path(mlperf.__file__).parents[2]) not in log().read_text()


def test_a_missing_package_is_an_error_that_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mlperf_logging.mllog", None)
    with pytest.raises(SteleError, match="pip install mlperf-logging"):
        mlperf.load_package()


def test_a_training_that_was_continued_has_no_log(training, tmp_path):
    mlperf.write(tmp_path, [changed(training, epochs={"continued": True})], TARGET)
    assert list(tmp_path.iterdir()) == []
