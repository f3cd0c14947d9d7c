"""Parts of the gate: how many steps a launch has, whether failures are chance, and how long passes take."""

import dataclasses
import math

import numpy
import pytest

from stele.gate import durations, failures, judgement, steps
from stele.gate.metrics import METRICS, launch_settings
from stele.gate.trial import ARMS
from stele.measuring.settings import Settings

STEP = METRICS[0]


def runs_of(run, seconds, noise=0.01):
    """Return the Runs of a pass whose steps take so many seconds, with a noise that differs between the arms."""
    cycles = {"old": (1, 0, -1), "control": (0, -1, 1), "new": (-1, 1, 0), "repeat": (1, -1, 0)}
    return {
        arm: dataclasses.replace(
            run,
            seconds=(1.0, *[seconds * (1 + noise * part) for part in cycles[arm] * 8]),
            warmup=1,
            plan={"turn": 1},
        )
        for arm in ARMS
    }


def test_a_launch_has_few_steps_if_they_are_long_and_many_if_they_are_short(run):
    counts = [
        steps.best_count(runs_of(run, seconds, 0.03), 40 + 4 * 25 * seconds) for seconds in (0.01, 0.2, 2.0)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == steps.MOST and counts[-1] == steps.LEAST


def test_a_launch_has_more_steps_if_they_vary_more(run):
    few, many = (steps.best_count(runs_of(run, 0.05, noise), 60.0) for noise in (0.005, 0.05))
    assert few < many


def test_the_first_launch_has_a_fixed_number_of_steps_and_a_short_one_three(run):
    assert steps.of_next_launch("long", "gate", []) == steps.FIRST
    calm, disturbed = (runs_of(run, 0.05, 0.005), 60.0), (runs_of(run, 0.05, 0.1), 60.0)
    assert steps.of_next_launch("long", "gate", [disturbed, calm, calm]) == steps.best_count(*calm)
    assert steps.of_next_launch("short", "smoke", []) == 3
    assert steps.of_next_launch("long", "quick", []) is None


def test_the_memory_of_a_model_of_the_user_is_that_of_more_steps_at_the_scale_of_the_others():
    """Three steps do not show what stays until Python collects garbage."""
    settings = Settings(device="cpu")
    assert steps.of_next_launch("short", "gate", [], own=True) == steps.FIRST
    assert steps.of_next_launch("warm", "smoke", [], own=True) == 3
    assert launch_settings("short", "gate", settings, own=True)[0] == "gate"
    assert launch_settings("warm", "gate", settings, own=True)[0] == "smoke"
    assert launch_settings("short", "gate", settings)[0] == "smoke"


def test_steps_are_compared_with_those_of_the_same_turn(run):
    """A disturbance that slows all arms for some steps changes nothing."""
    runs = runs_of(run, 0.1)
    disturbed = {
        arm: dataclasses.replace(one, seconds=(*one.seconds[:10], *(3 * value for value in one.seconds[10:])))
        for arm, one in runs.items()
    }
    assert STEP.values(disturbed) == pytest.approx(STEP.values(runs))


def test_steps_without_turns_are_compared_by_their_tenth_percentile(run):
    runs = {arm: dataclasses.replace(one, plan={}) for arm, one in runs_of(run, 0.1).items()}
    expected = {arm: math.log(numpy.percentile(one.counted_seconds, 10)) for arm, one in runs.items()}
    assert STEP.values(runs) == pytest.approx(expected)
    assert STEP.values(runs) != pytest.approx(STEP.values(runs_of(run, 0.1)))


def test_a_metric_of_which_one_launch_has_no_number_is_unknown(run):
    memory = next(metric for metric in METRICS if metric.name == "host-memory")
    runs = {**dict.fromkeys(ARMS, run), "repeat": dataclasses.replace(run, host_memory=None)}
    assert memory.values(runs) is None


def round_of(*failing):
    return {"arms": list(ARMS), "failures": dict.fromkeys(failing, "crashed")}


@pytest.mark.parametrize(
    ("rounds", "certain"),
    [
        ([round_of("new", "repeat")] * 2, False),
        ([round_of("new", "repeat")] * 4, True),
        ([round_of("new")] * 4, False),
        ([round_of("new")] * 12, True),
        ([round_of("new"), round_of("old")] * 20, False),
        ([round_of(*ARMS)] * 20, False),
    ],
)
def test_failures_are_certain_only_if_chance_is_excluded(rounds, certain):
    assert (failures.log_evidence(rounds) >= judgement.certainty(2)) == certain


def test_failures_are_counted_by_release():
    rounds = [round_of("new"), round_of("repeat", "old"), round_of("control")]
    assert failures.count(rounds) == (2, 2)
    assert failures.last_message(rounds, new=True) == "crashed"
    assert failures.last_message([round_of("old")], new=True) == ""


def test_a_damaged_file_of_durations_is_ignored(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    (tmp_path / durations.FILE).write_text("[")
    assert durations.read() == {}
