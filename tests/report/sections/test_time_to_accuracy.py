"""Trainings to an accuracy."""

import pytest

from stele.measuring import store
from tests.support.reports import report, section, training


def test_trainings_to_an_accuracy_are_shown_by_environment_and_by_seed(folder, run):
    for seed, accuracy in enumerate([0.59, 0.61, 0.62]):
        store.save(training(run, "torch", seed, accuracy), folder)
    store.save(training(run, "jax", 0, 0.63, continued=True), folder)
    whole = report(folder)
    assert [one.anchor for one in whole.sections] == ["time-to-accuracy", "in-force"]
    summary, seeds = (figure.table for figure in section(whole, "time-to-accuracy").figures)
    assert summary.title == "cifar-fast, scale cpu, closed division, 2 epochs, target 60%"
    columns = dict(zip(summary.head, zip(*summary.rows, strict=True), strict=True))
    assert columns["environment"] == ("jax", "torch")
    assert columns["accuracy, %"] == (pytest.approx(63), pytest.approx(100 * 1.82 / 3))
    assert columns["training, s (DAWNBench)"] == (None, 4.5)
    assert columns["training, s (MLPerf)"] == (None, 5.5)
    assert columns["P(target)"] == (1.0, pytest.approx(2 / 3))
    assert "1 continued" in columns["remarks"][0]
    assert seeds.rows[1] == ["torch", 0, 4.5, pytest.approx(59), 5.5, 2]
