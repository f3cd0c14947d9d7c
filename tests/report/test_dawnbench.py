"""A training as the files of DAWNBench."""

import json

import pytest

from stele.errors import SteleError
from stele.report import dawnbench
from stele.time_to_accuracy.prices import Price
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


# DAWNBench


def test_a_line_of_the_tsv_has_the_hours_without_evaluation_and_compilation(training):
    lines = dawnbench.to_tsv(training).splitlines()
    assert lines[0] == "epoch\thours\ttop1Accuracy"
    first, second = (line.split("\t") for line in lines[1:])
    assert (first[0], second[0]) == ("1", "2")
    assert float(first[1]) == pytest.approx(39.6 / HOUR) and float(second[1]) == pytest.approx(75.6 / HOUR)
    assert (first[2], second[2]) == ("50.0", "65.0")


def test_the_json_has_dawnbenchs_fields_and_the_price_only_if_it_is_known(training):
    facts = json.loads(dawnbench.to_json(training, None))
    needed = {"version", "author", "authorEmail", "framework", "model", "hardware", "timestamp", "misc"}
    assert set(facts) == needed
    assert facts["model"] == "cnn" and facts["timestamp"] == "2026-01-02"
    assert json.loads(dawnbench.to_json(training, Price("x", 3.99)))["costPerHour"] == 3.99


def test_each_training_has_two_files_and_one_that_was_continued_has_none(training, tmp_path):
    other = changed(training, settings={"seed": 1})
    continued = changed(training, settings={"seed": 2}, epochs={"continued": True})
    dawnbench.write(tmp_path, [training, other, continued], None)
    assert len(list(tmp_path.glob("*.tsv"))) == len(list(tmp_path.glob("*.json"))) == 2
    with pytest.raises(SteleError, match="resumed training has no total time"):
        dawnbench.to_tsv(continued)
