"""The tables of published and measured results."""

import json

import pytest

from stele.environments import first_modes, names
from stele.errors import SteleError
from stele.report import published
from tests.support.runs import changed


def line(text, table, label):
    """Return the cells of the row with this label in one of the three tables."""
    lines = text.split("\n\n")[2 * table + 1].splitlines()
    [row] = [line for line in lines if line.startswith(f"| {label} |")]
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_published_and_measured_results_are_in_one_row(run):
    cells = line(published.tables([run]), 0, "PyTorch")
    assert cells[1:4] == ["169", "51", "77.5%"]
    assert cells[4:7] == ["torch 2.13.0", "[78.1 85.9 93.7]", "36.0%"]


def test_seconds_of_training_are_for_the_whole_published_task(run):
    assert published.seconds("cnn", run) == "[78.1 85.9 93.7]"  # 10 epochs of 781 steps of 10, 11 and 12 ms


def test_seconds_of_features_are_for_a_thousand_images(run):
    features = changed(run, task="resnet50", phase="infer", steps={"batch": 4}, learning={"accuracy": None})
    assert published.seconds("resnet50", features) == "[2.50 2.75 3.00]"
    cells = line(published.tables([features]), 1, "PyTorch")
    assert "batch 4, not 32" in cells[-1]


def test_missing_published_values_are_question_marks(run):
    cells = line(published.tables([run]), 1, "R-MXNet")
    assert cells[1:3] == ["??", "??"]
    assert cells[-1] == "published: never written"


def test_an_environment_that_was_not_measured_shows_the_reason(run, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    cells = line(published.tables([run]), 0, "Knet (Julia)")
    assert cells[5] == "not run"
    assert "julia is not on PATH" in cells[-1]


def test_an_alternative_form_is_a_remark(run):
    one_bias = changed(run, task="gru", options={"form": "one-bias"})
    assert "gru in the form one-bias" in line(published.tables([one_bias]), 2, "PyTorch")[-1]


def test_an_environment_that_a_user_pinned_has_a_row(run):
    pinned = changed(run, environment="torch==2.12.0", label="PyTorch, torch==2.12.0")
    assert line(published.tables([run, pinned]), 0, "PyTorch, torch==2.12.0")[6] == "36.0%"


def test_every_environment_is_in_every_table(run):
    for table in published.tables([run]).split("\n\n")[1:6:2]:
        assert len(table.splitlines()) >= 2 + len(first_modes())


def test_another_mode_has_a_row_only_if_it_was_measured(run):
    assert "PyTorch, torch.compile" not in published.tables([run])
    compiled = changed(run, environment="torch-compile", label="PyTorch, torch.compile")
    text = published.tables([run, compiled])
    assert line(text, 0, "PyTorch, torch.compile")[6] == "36.0%"
    assert text.count("PyTorch, torch.compile") == 1


def test_every_published_framework_has_an_environment():
    original = json.loads(published.FILE.read_text())
    counts = {task: len(original[task]) for task in published.TITLES}
    assert counts == {"cnn": 13, "resnet50": 12, "gru": 10}
    assert {name for task in published.TITLES for name in original[task]} - set(names()) == set(published.NEVER_WRITTEN)


def test_no_runs_are_an_error_with_the_command_that_measures():
    with pytest.raises(SteleError, match="pytest perf_tests --benchmark-only"):
        published.tables([])
