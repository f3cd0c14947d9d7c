"""The verdicts on the parity of the tasks and on accuracy."""

from types import SimpleNamespace

import pytest

from stele.gate import correctness
from stele.gate.correctness_verdicts import (
    FAILED_LAUNCHES,
    SEEDS,
    agreeing_tasks,
    equal_steps,
    ladder_verdict,
    trainings_verdict,
)
from stele.gate.entries import Verdict
from stele.gate.trial import ARMS
from stele.parity.ladder import Finding
from stele.subjects import Cell
from tests.support.gates import entries, make_trial, printed
from tests.support.runs import changed, make_run


def test_equal_losses_of_one_seed_are_enough(gate, capsys):
    scripts = {
        "old": {"accuracy": 0.80, "losses": [2.0, 1.0]},
        "new": {"accuracy": 0.801, "losses": [2.0001, 1.0]},
    }
    assert gate(metric="accuracy", phase="train", **scripts) == 0
    assert "the losses of all 2 steps from one seed are equal (largest relative difference 5.0e-05)" in printed(capsys)
    assert len(entries()[1]) == 1


def test_equal_losses_do_not_hide_a_lower_accuracy(gate):
    scripts = {"old": {"accuracy": 0.80, "losses": [2.0]}, "new": {"accuracy": 0.77, "losses": [2.0]}}
    assert gate(metric="accuracy", phase="train", **scripts) == 1


def test_an_unknown_accuracy_is_inconclusive(gate, capsys):
    assert gate(metric="accuracy", phase="train", old={"accuracy": 0.8}, new={"accuracy": None}) == 3
    assert "NEW reported no accuracy, so it cannot be compared." in printed(capsys)


def findings(*statuses):
    return [Finding(rung, status, f"rung {rung}") for rung, status in enumerate(statuses, 1)]


@pytest.mark.parametrize(
    ("old", "new", "status", "message"),
    [
        ("agrees", "agrees", "PASS", "all rungs agree, up to rung 2"),
        ("agrees", "differs", "BROKEN", "NEW differs from OLD: "),
        ("differs", "differs", "INCONCLUSIVE", "OLD differs, too. OLD: "),
        ("differs", "agrees", "PASS", "all rungs agree, up to rung 2"),
    ],
)
def test_new_is_blamed_only_for_a_rung_below_which_old_agrees(old, new, status, message):
    said = ladder_verdict("gru", findings("agrees", old), findings("agrees", new))
    assert said.status == status and said.message.startswith(message)


def training(old, new, losses=((2.0,), (3.0,))):
    """Return the entry of a training of both arms with these accuracies."""
    run = make_run()
    values = {"old": (losses[0], old), "new": (losses[1], new)}
    runs = {
        arm: changed(run, learning={"losses": of_arm, "accuracy": accuracy})
        for arm, (of_arm, accuracy) in values.items()
    }
    return {"runs": runs, "rounds": []}


CELL = Cell("gru", "train")


def test_trainings_end_at_the_first_number_of_seeds_that_is_certain():
    said, is_final = trainings_verdict(CELL, [training(0.8, 0.8)] * (SEEDS[0] - 1))
    assert (said.status, is_final) == ("INCONCLUSIVE", False)
    said, is_final = trainings_verdict(CELL, [training(0.8, 0.8)] * SEEDS[0])
    assert (said.status, is_final) == ("PASS", True)


def test_trainings_end_after_the_last_seed_even_if_they_are_inconclusive():
    varied = [training(0.8, 0.8 + 0.05 * (-1) ** seed) for seed in range(SEEDS[-1])]
    said, is_final = trainings_verdict(CELL, varied)
    assert (said.status, is_final) == ("INCONCLUSIVE", True)


@pytest.mark.parametrize(
    ("arms", "attempts", "status", "message"),
    [
        (["new"], FAILED_LAUNCHES, "BROKEN", "NEW failed in 4 launches: killed"),
        (["new"], FAILED_LAUNCHES - 1, "INCONCLUSIVE", "NEW failed in 3 launches: killed"),
        (["old", "new"], FAILED_LAUNCHES, "INCONCLUSIVE", "OLD: killed"),
    ],
)
def test_a_training_that_fails_is_broken_only_if_new_alone_fails_each_time(arms, attempts, status, message):
    rounds = [{"arms": ["old", "new"], "failures": dict.fromkeys(arms, "killed")}] * attempts
    said, is_final = trainings_verdict(CELL, [{"runs": None, "rounds": rounds}])
    assert (said.status, said.message, is_final) == (status, message, True)


def timed(*losses, number=0):
    """Return the entry of a pass whose launches have these losses, for each arm."""
    runs = {arm: changed(make_run(), learning={"losses": of_arm}) for arm, of_arm in zip(ARMS, losses, strict=True)}
    return {"key": ("long", "gru train", number), "runs": runs}


LOSSES = tuple(2.0 - 0.01 * number for number in range(20))


def test_equal_bits_in_all_timed_launches_are_enough_for_the_accuracy():
    """A pass with more steps begins as the others do."""
    entries_of_passes = [timed(*[LOSSES] * 4), timed(*[(*LOSSES, 1.0)] * 4, number=1)]
    verdict = equal_steps(Cell("gru", "train"), entries_of_passes)
    assert verdict.status == "PASS" and verdict.message.startswith("the losses of the first 20 steps are equal in ev")
    assert "in all 2 passes; so the rest of the training was not compared" in verdict.message


@pytest.mark.parametrize(
    "losses",
    [
        [LOSSES, LOSSES, (*LOSSES[:-1], LOSSES[-1] * (1 + 1e-15)), LOSSES],  # another rounding
        [LOSSES[:9]] * 4,  # few steps
        [(None, *LOSSES)] * 4,  # no number
        [()] * 4,
    ],
)
def test_losses_that_do_not_show_the_same_training_need_trainings(losses):
    assert equal_steps(Cell("gru", "train"), [timed(*losses)]) is None


def test_the_accuracy_of_a_gate_without_parity_needs_trainings(gate):
    """Nothing else has compared what later steps and the evaluation compute."""
    scripts = {"old": {"accuracy": 0.80, "losses": list(LOSSES)}, "new": {"accuracy": 0.80, "losses": list(LOSSES)}}
    assert gate(metric="step,accuracy", phase="train", **scripts) == 0
    assert [launch["key"][0] for launch in entries()[1]].count("accuracy") == 1


@pytest.mark.parametrize(("status", "tasks"), [("PASS", {"gru"}), ("INCONCLUSIVE", set()), ("BROKEN", set())])
def test_equal_bits_are_enough_only_in_a_task_in_which_parity_agrees(status, tasks):
    verdicts = [Verdict("gru", "all", "parity", status, ""), Verdict("cnn", "train", "step", "PASS", "")]
    assert agreeing_tasks(verdicts) == tasks


@pytest.mark.parametrize(("agreeing", "trained"), [({"gru"}, 0), (set(), 1)])
def test_a_task_is_trained_unless_parity_agrees(monkeypatch, agreeing, trained):
    trainings, cell = [], Cell("gru", "train")
    monkeypatch.setattr(
        correctness, "train_arms", lambda *about: trainings.append(about) or training(0.5, 0.5, ((2.0,), (2.0,)))
    )
    record = SimpleNamespace(entries=lambda: [timed(*[LOSSES] * 4)], get=lambda *key: None)
    gate = SimpleNamespace(trial=make_trial(), record=record, say=print, is_spent=False)
    correctness.accuracy(gate, [cell], agreeing)
    assert len(trainings) == trained
