"""Parity with the golden numbers, and the accuracy after training, in a gate."""

from tests.support.gates import entries, printed
from tests.support.scripted_environments import correct_numbers


def test_a_cell_that_only_old_has_is_missing(gate, capsys):
    assert gate(new={"absent": {"gru": "no recurrences"}}, task="gru,cnn") == 1
    assert "MISSING  gru infer: " in printed(capsys)


def test_a_new_release_that_computes_the_same_passes(gate, capsys):
    assert gate(old={"numbers": correct_numbers("gru")}, new={"numbers": correct_numbers("gru")}, metric="parity") == 0
    assert "  parity  all rungs agree, up to rung 9" in printed(capsys)


def test_a_loss_of_accuracy_is_a_regression(gate, capsys):
    scripts = {"old": {"accuracy": 0.80}, "new": {"accuracy": 0.77}}
    assert gate(metric="accuracy", phase="train", **scripts) == 1
    assert "REGRESSED  train accuracy: mean accuracy loss +3.00 points" in printed(capsys)


def test_an_equal_accuracy_passes(gate, capsys):
    scripts = {
        "old": {"accuracy": 0.80, "losses": [2.0, 1.0]},
        "new": {"accuracy": 0.80, "losses": [2.1, 1.1]},
    }
    assert gate(metric="accuracy", phase="train", **scripts) == 0
    seeds = [run["settings"]["seed"] for launch in entries()[1] for run in launch["runs"].values()]
    assert seeds == [seed for seed in range(5) for _ in ("old", "new")]
