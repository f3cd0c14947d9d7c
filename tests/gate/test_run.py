"""What a gate judges, and in which order."""

import pytest

from stele.gate import correctness, run, timing
from stele.gate.entries import Verdict
from stele.gate.gate import Gate
from tests.support.gates import make_trial, printed
from tests.support.scripted_environments import correct_numbers


@pytest.mark.slow
def test_weights_that_cannot_be_matched_are_not_broken_and_time_is_measured_all_the_same(model_gate, capsys):
    new = {"parity": "unfit_weights"}
    assert model_gate("--phase=infer", "--budget=60s", new=new, metric="parity,host-memory") == 3
    out = " ".join(capsys.readouterr().out.split())
    assert "INCONCLUSIVE infer parity: not comparable: The weights lack 'gate.weight'" in out
    assert "--weights-map FILE" in out
    assert "infer host-memory the same" in out


def test_a_model_that_new_cannot_run_is_broken_and_its_time_is_not_measured(model_gate, capsys):
    assert model_gate("--phase=infer", "--budget=60s", new={"parity": "user_error"}, metric="parity,step") == 1
    output = capsys.readouterr()
    assert "BROKEN" in output.out and "NEW: net.py raised ZeroDivisionError" in output.out
    assert "time, memory" not in output.err


@pytest.mark.slow
def test_a_new_release_that_computes_something_different_is_broken_and_not_timed(gate, capsys):
    wrong = {**correct_numbers("gru"), "logits": [[0.0, 0.0]] * 16}
    assert gate(old={"numbers": correct_numbers("gru")}, new={"numbers": wrong}, metric="parity,step") == 1
    out = printed(capsys)
    assert "BROKEN  parity: NEW differs from OLD: logits differ (rung 3): relative error" in out
    assert "infer step" not in out


def test_accuracy_is_judged_after_three_fifths_of_the_budget(gate, monkeypatch):
    calls = []

    def measure_until(gate, cells, *, share=1.0):
        calls.append(("time", share))
        return []

    monkeypatch.setattr(timing, "measure", measure_until)
    monkeypatch.setattr(correctness, "accuracy", lambda *_: calls.append("accuracy") or [])
    gate(metric="step,accuracy", phase="train")
    assert calls == [("time", 0.6), "accuracy", ("time", 1.0)]


@pytest.fixture
def steps(monkeypatch):
    """steps(status of parity, early=status of a metric, **facts of the trial) -> what is judged, in order."""

    def steps(status, *, early="PASS", **facts):
        listed = []

        def judged(step, verdicts):
            listed.append(step)
            return verdicts

        def measure(gate, cells, *, share=1.0):
            return judged(f"time of {len(cells)} cells", [Verdict("gru", "infer", "step", early, "")])

        verdicts = [Verdict("gru", "infer", "parity", status, "")]
        monkeypatch.setattr(correctness, "missing", lambda trial: [])
        monkeypatch.setattr(correctness, "parity", lambda gate: judged("parity", verdicts))
        monkeypatch.setattr(
            correctness, "accuracy", lambda gate, cells, agreeing: judged(f"accuracy of {len(cells)} cells", [])
        )
        monkeypatch.setattr(timing, "measure", measure)
        run.run(Gate(make_trial(**facts), record=None))
        return listed

    return steps


def test_parity_comes_before_the_time_and_accuracy_between_two_parts_of_it(steps):
    assert steps("PASS") == ["parity", "time of 1 cells", "accuracy of 1 cells", "time of 1 cells"]
    assert steps("PASS", accuracy=False) == ["parity", "time of 1 cells"]


@pytest.mark.parametrize("status", ["BROKEN", "INCONCLUSIVE"])
def test_a_task_that_does_not_pass_parity_is_not_timed(steps, status):
    assert steps(status, accuracy=False) == ["parity", "time of 0 cells"]


def test_with_fail_fast_the_first_verdict_against_new_ends_the_gate(steps):
    assert steps("BROKEN", fail_fast=True) == ["parity"]
    assert steps("PASS", early="REGRESSED", fail_fast=True) == ["parity", "time of 1 cells"]
    assert len(steps("PASS", early="INCONCLUSIVE", fail_fast=True)) == 4
