"""What a verdict says, and how its numbers are worded."""

import functools
import re
from dataclasses import replace

import pytest

from stele.gate.correctness_verdicts import SEEDS
from stele.gate.judgement import Judgement, Series
from stele.gate.launcher import Launcher
from stele.gate.verdict import accuracy_verdict, bound, change_range, message_of, noise_of
from stele.measuring import measure
from stele.measuring.worker import WorkerError
from stele.statistics import Estimate
from stele.text import DURATION, SIZE, change
from tests.support.gates import BY_NAME, answer, entries, measure_arms, printed, slower
from tests.support.runs import changed
from tests.support.scripted_environments import SHORT


@pytest.mark.parametrize(
    ("metric", "spread", "malloc", "expected"),
    [
        ("step", 0.06, "plain", "differ by 6.0 % (standard deviation); --malloc steady may reduce that"),
        ("host-memory", 0.06, "plain", "differ by 6.0 % (standard deviation); --malloc mmap may reduce that"),
        ("step", 0.06, "steady", "differ by 6.0 % (standard deviation)."),
        ("wall-time", 0.06, "plain", "differ by 6.0 % (standard deviation)."),  # of a command
        ("step", 0.005, "plain", ""),
        ("first-step", 0.03, "plain", ""),
    ],
)
def test_the_noise_that_keeps_a_metric_open_is_said_with_what_helps(metric, spread, malloc, expected):
    values = (0.0, spread * 2**0.5)
    series = Series(0.05, 0.01, 0.01, ((values, values), (values, values[::-1])))
    assert expected in noise_of(BY_NAME[metric], series, malloc)
    assert bool(expected) == bool(noise_of(BY_NAME[metric], series, malloc))


@pytest.mark.parametrize(
    ("count", "status", "part"),
    [
        (4, "INCONCLUSIVE", "4 of 5 seeds"),
        (8, "INCONCLUSIVE", "More seeds are needed."),
        (20, "PASS", "margin 1 point"),
    ],
)
def test_accuracies_that_vary_between_seeds_take_more_seeds(count, status, part):
    losses = [0.003 * (5, -5, 3, -3, 1, -1)[seed % 6] for seed in range(count)]
    verdict = accuracy_verdict(("gru", "train"), losses, margin=0.01, looks=SEEDS)
    assert (verdict.status, part in verdict.message) == (status, True)


def test_accuracies_that_vary_too_much_are_inconclusive_after_the_last_seed():
    losses = [0.05 * (-1) ** seed for seed in range(20)]
    for count, part in ((12, "More seeds are needed"), (20, "The seeds differ too much")):
        verdict = accuracy_verdict(("gru", "train"), losses[:count], margin=0.01, looks=SEEDS)
        assert verdict.status == "INCONCLUSIVE" and part in verdict.message


@pytest.mark.parametrize(
    "middle, high, message",
    [
        (1.005, 1.017, "at most 1.7 %"),
        (0.9, 1.017, "at most 1.7 % slower"),
        (1.0, 1.017, "at most 1.7 % slower"),
        (0.9, 0.95, "at least 5.0 %"),
        (0.9, 1.0, "at worst the same"),
        (0.9, 2.5, "at most 2.5 times as long"),
        (1.5, 2.5, "at most 2.5 times as long"),
        (2.4, 2.5, "at most 2.5 times as long"),
    ],
)
def test_the_message_of_a_pass_names_its_upper_bound(middle, high, message):
    assert bound(middle, high, DURATION) == message


@pytest.mark.parametrize(
    "low, high, message",
    [
        (1.186, 1.235, "18.6 to 23.5 % slower"),
        (0.94, 0.98, "6.0 to 2.0 % faster"),
        (0.99, 1.02, "1.0 % faster to 2.0 % slower"),
        (1.0, 1.02, "the same to 2.0 % slower"),
        (1.0, 1.0, "the same"),
        (2.1, 3.4, "2.1 to 3.4 times as long"),
        (1.5, 3.4, "50.0 % slower to 3.4 times as long"),
    ],
)
def test_the_message_of_an_open_metric_names_its_interval(low, high, message):
    assert change_range(low, high, DURATION) == message


def test_growth_between_tolerance_and_margin_is_said():
    result = Judgement("INCONCLUSIVE", passes=14, ratio=Estimate(0.993, 1.013, 1.032), open=True)
    assert message_of(BY_NAME["step"], result) == (
        "1.3 % slower, 0.7 % faster to 3.2 % slower (98 % interval, 14 passes). "
        "This is below the margin (5 %), but perhaps above the tolerance (1 %)."
    )
    wide = replace(result, ratio=Estimate(0.993, 1.013, 1.06))
    assert "This is not enough evidence at the gate's level (margin 5 %)." in message_of(BY_NAME["step"], wide)


@pytest.mark.parametrize(
    ("ratio", "words", "message"),
    [
        (1.999, DURATION, "99.9 % slower"),
        (2.0, DURATION, "2.0 times as long"),
        (296.25, DURATION, "296 times as long"),
        (1411.012, DURATION, "1,411 times as long"),
        (0.003, DURATION, "99.7 % faster"),
        (15.278, SIZE, "15.3 times as large"),
        (1.5, SIZE, "50.0 % more"),
    ],
)
def test_a_growth_by_more_than_a_hundred_per_cent_is_a_factor(ratio, words, message):
    assert change(ratio, words) == message


@pytest.mark.parametrize(
    ("loss", "spread", "status"),
    [
        (0.004, 0.0005, "PASS"),  # certain, and below half a point
        (0.006, 0.0005, "REGRESSED"),
        (0.006, 0.01, "INCONCLUSIVE"),  # not certain
        (0.0, 0.02, "INCONCLUSIVE"),  # a loss of one point is not ruled out
        (0.0, 0.002, "PASS"),
    ],
)
def test_an_accuracy_is_judged_by_what_is_certain_of_its_loss(loss, spread, status):
    losses = [loss + spread * part for part in (1, -1, 0.5, -0.5, 0)]
    assert accuracy_verdict(("gru", "train"), losses, margin=0.01, looks=SEEDS).status == status


def test_a_slower_step_is_a_regression(gate, capsys):
    assert gate(new={"seconds": slower(1.05)}) == 1
    out = printed(capsys)
    assert re.search(
        r"REGRESSED  infer step: 5\.0 % slower in 4 passes, p 0\.00\d+; NEW / OLD \[1\.\d+ 1\.050 1\.\d+\]\n", out
    )
    assert out.startswith("REGRESSED  old → new. At least one metric regressed.\n")


def test_a_faster_step_is_an_improvement_and_passes(gate, capsys):
    assert gate(new={"seconds": slower(0.9)}) == 0
    assert "10.0 % faster in 4 passes" in printed(capsys)


def test_memory_that_doubles_is_a_regression(gate, capsys):
    assert gate(new={"host_memory": 2**21}, metric="step,host-memory") == 1
    assert re.search("REGRESSED  infer host-memory: 2.0 times as large in [45] passes", printed(capsys))


def test_device_memory_is_not_judged_on_a_machine_without_a_device(gate, capsys):
    assert gate(metric="step,device-memory") == 2
    assert "--metric device-memory needs a device with a memory of its own" in capsys.readouterr().err


def test_a_metric_without_numbers_is_inconclusive(gate, capsys):
    assert gate(new={"host_memory": None}, metric="step,host-memory") == 3
    assert "NEW reported no host-memory, so it cannot be compared." in printed(capsys)
    assert len([launch for launch in entries()[1] if launch["key"][0] == "short"]) == 1


def test_growth_below_the_tolerance_passes(gate, capsys):
    assert gate("--tolerance=3%", new={"seconds": slower(1.02)}) == 0
    assert "2.0 % slower, tolerance 3 %; at most" in printed(capsys)


def test_growth_above_the_tolerance_is_a_regression_whatever_the_margin(gate, capsys):
    assert gate("--margin=10%", new={"seconds": slower(1.02)}) == 1
    assert "REGRESSED" in printed(capsys)


@pytest.mark.slow
@pytest.mark.parametrize(
    "failure, message",
    [("segfault", "killed by SIGSEGV"), ("raise_error", "no such kernel"), ("hang", "sent no message")],
)
def test_a_new_release_that_fails_is_broken(gate, capsys, failure, message):
    assert gate(f"--worker-timeout={SHORT}", new={"infer": failure}) == 1
    out = printed(capsys)
    assert "BROKEN  infer: " in out and message in out
    assert len(entries()[1]) == 2  # the first pass alone is not certain enough


@pytest.mark.slow
def test_a_new_release_that_does_not_import_is_broken(gate, capsys):
    assert gate(new={"configure": "raise_error"}) == 1
    assert "BROKEN" in printed(capsys)


@pytest.mark.slow
def test_an_old_release_that_fails_is_inconclusive(gate, capsys):
    assert gate(old={"infer": "segfault"}) == 3
    assert "INCONCLUSIVE  infer: " in printed(capsys)


def fails(monkeypatch, arms_that_fail):
    """Let each first attempt of a pass fail in the next of these arms."""
    arms_that_fail = iter(arms_that_fail)

    def measure_flakily(sides, *about):
        failing = None if len(sides) == 1 else next(arms_that_fail, None)
        if failing is not None:
            raise measure.SideFailed(failing, WorkerError(f"Worker '{failing}' crashed now and then."))
        return measure_arms(sides, *about)

    answer(monkeypatch, measure_flakily)


def test_releases_that_fail_equally_often_are_not_broken(gate, monkeypatch):
    fails(monkeypatch, ["new", None, "old", None, "repeat", None, "control", None] * 5)
    assert gate() == 0


def test_a_few_failures_of_new_alone_may_be_chance(gate, monkeypatch):
    fails(monkeypatch, ["new", None, "repeat", None])
    assert gate() == 0


def test_a_release_that_fails_now_and_then_while_old_never_does_is_broken(gate, capsys, monkeypatch):
    monkeypatch.setattr("stele.gate.timing.Launcher", functools.partial(Launcher, attempts=20))
    fails(monkeypatch, ["new"] * 12)
    assert gate() == 1
    assert "NEW failed in 12 of" in printed(capsys)


@pytest.mark.slow
def test_if_both_releases_fail_new_is_not_blamed(gate, capsys):
    for seed in range(4):
        assert gate(f"--seed={seed}", old={"infer": "segfault"}, new={"infer": "segfault"}) == 3
        assert "OLD: Worker 'old' crashed" in printed(capsys)


@pytest.mark.slow
def test_a_control_that_differs_makes_every_metric_inconclusive(gate, capsys, monkeypatch):
    """The second launch of OLD is always slower, which no release can explain."""

    def measure_with_drift(*about):
        runs = measure_arms(*about)
        seconds = tuple(value * (1.3 if len(runs) > 1 else 1) for value in runs["control"].steps.seconds)
        return {**runs, "control": changed(runs["control"], steps={"seconds": seconds})}

    answer(monkeypatch, measure_with_drift)
    assert gate() == 3
    out = printed(capsys)
    assert "INCONCLUSIVE  infer step" in out and "REGRESSED" not in out
    assert "The control failed: OLD differs from itself" in out


def test_a_gate_of_memory_alone_has_no_verdict_on_the_control(gate, capsys):
    assert gate(metric="host-memory") == 0
    assert "control" not in printed(capsys)
