"""What is said of the trainings of several seeds."""

import json
import re
from pathlib import Path

import pytest

from stele.measuring import store
from stele.parity import accuracy
from tests.support.trainings import FOLDER, printed, results

# epochs of 2 s, preparation of 0.5 s, evaluations of 1 s: see scripted.training
DAWNBENCH, MLPERF = 0.5 + 3 * 2, 0.5 + 3 * 2 + 3


def test_both_definitions_of_the_clock_are_reported(measure_seeds, capsys):
    result, status = results(measure_seeds)
    assert status == 0
    assert result["times"]["DAWNBench"]["mean"]["middle"] == DAWNBENCH
    assert result["times"]["MLPerf"]["mean"]["middle"] == MLPERF
    assert result["compile_seconds"] == 5.0
    out = printed(capsys)
    assert "fake  seed 0  61.00%  reached the target  6.50 s (DAWNBench), 9.50 s (MLPerf)" in out
    assert "P(target)" in out


def test_compilation_beyond_mlperfs_budget_counts(measure_seeds):
    result, _ = results(measure_seeds, compile_seconds=1900.0)
    assert result["times"]["DAWNBench"]["mean"]["middle"] == DAWNBENCH
    assert result["times"]["MLPerf"]["mean"]["middle"] == pytest.approx(MLPERF + 100)


def test_a_run_that_misses_the_target_is_repeated_in_the_expected_time(measure_seeds):
    result, status = results(measure_seeds, accuracies=[0.61, 0.62, 0.59, 0.63])
    assert status == 0
    assert result["probability"]["middle"] == 0.75
    assert result["times"]["DAWNBench"]["expected"]["middle"] == pytest.approx(DAWNBENCH / 0.75)
    assert result["times"]["DAWNBench"]["mlperf_mean"] == DAWNBENCH


def test_a_lucky_epoch_before_the_last_does_not_count(measure_seeds, monkeypatch):
    result, status = results(measure_seeds, count=2, accuracies=[0.59], each=[0.5, 0.7, 0.59])
    assert status == 3
    assert result["probability"]["middle"] == 0
    assert result["times"]["DAWNBench"]["expected"] is None


def test_a_target_out_of_reach_is_reported_after_three_seeds_with_the_probability(measure_seeds, capsys):
    assert measure_seeds(accuracies=[0.501, 0.502, 0.503, 0.504], count=10) == 2
    error = capsys.readouterr().err
    assert "fake cannot reach 60.0% in 3 epochs: after 3 seeds, the mean accuracy is 50.20%" in error
    assert re.search(r"with a probability of \d(\.\d+)?e-\d+", error)
    assert "Lower --target, or raise --epochs" in error
    assert len(list((FOLDER / store.UNFINISHED).glob("*.json"))) == 3


def test_an_environment_that_cannot_reach_the_target_does_not_stop_the_others(measure_seeds, add_environment, capsys):
    add_environment("bad", accuracies=[0.501, 0.502, 0.503, 0.504])
    assert measure_seeds("--framework=bad,fake", "--json=out.json") == 2
    assert "stele: bad cannot reach 60.0% in 3 epochs" in capsys.readouterr().err
    [result] = json.loads(Path("out.json").read_text())["results"]
    assert result["environment"] == "fake"


def test_a_continued_training_counts_for_the_accuracy_and_never_for_the_time(measure_seeds, capsys):
    result, _ = results(measure_seeds, continued=[1])
    assert len(result["accuracies"]) == 4 and result["continued"] == 1
    assert "seed 1  62.00%  reached the target  continued, so its time does not count" in printed(capsys)
    result, _ = results(measure_seeds, continued=[0, 1, 2, 3])
    assert result["times"] == {"DAWNBench": None, "MLPerf": None}
    assert result["accuracy"]["middle"] == pytest.approx(0.625)


def test_convergence_faster_than_the_reference_is_rejected(measure_seeds, monkeypatch, capsys):
    monkeypatch.setattr(accuracy, "reference_accuracies", lambda run: [0.58, 0.585, 0.59, 0.582, 0.588])
    result, status = results(measure_seeds)
    assert status == 1 and result["rejected"] and result["reference_p"] < 0.05
    assert "rejected: converges faster than the reference (p 0.0" in printed(capsys)


def test_slower_convergence_than_the_reference_is_no_reason_to_reject(measure_seeds, monkeypatch):
    monkeypatch.setattr(accuracy, "reference_accuracies", lambda run: [0.68, 0.685, 0.69, 0.682, 0.688])
    assert results(measure_seeds)[0]["rejected"] is False


def test_other_epochs_are_not_compared_with_the_reference(measure_seeds, monkeypatch):
    monkeypatch.setattr(accuracy, "reference_accuracies", lambda run: [0.1, 0.11, 0.12, 0.1, 0.11])
    result, status = results(measure_seeds, "--epochs=4")
    assert (status, result["reference_p"], result["epochs"]) == (0, None, 4)


def test_an_unknown_price_and_unknown_energy_are_null(measure_seeds, monkeypatch):
    monkeypatch.setattr("stele.measuring.energy.read_packages", lambda: None)
    result, _ = results(measure_seeds)
    assert result["cost"] is None and result["price"] is None
    assert result["energy"] == {"processors": None}


def test_the_cost_is_the_expected_time_at_the_price(measure_seeds):
    result, _ = results(measure_seeds, "--price=3.6")
    assert result["cost"]["middle"] == pytest.approx(DAWNBENCH * 0.001)
