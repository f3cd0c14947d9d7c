"""How many steps a launch times."""

import dataclasses

import msgspec
import pytest

from stele.environments import ORACLE
from stele.gate import steps
from stele.gate.metrics import (
    KINDS,
    LATENCY,
    LONG,
    METRICS,
    NEW_BATCH,
    SHORT,
    launch_settings,
    of_subject,
)
from stele.gate.trial import Trial
from stele.measuring.settings import Settings
from stele.subjects import Cell
from tests.support.gates import runs_of


def test_a_launch_has_few_steps_if_they_are_long_and_many_if_they_are_short(run):
    counts = [
        steps.best_count(runs_of(run, seconds, 0.03), start=10.0, spread=steps.LAUNCH_SPREAD)
        for seconds in (0.001, 0.2, 2.0)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == steps.MOST and counts[-1] == steps.LEAST


def test_a_launch_has_more_steps_if_they_vary_more(run):
    few, many = (steps.best_count(runs_of(run, 0.05, noise), start=10.0, spread=0.007) for noise in (0.005, 0.05))
    assert few < many


def test_a_launch_has_fewer_steps_if_launches_differ_more(run):
    equal = runs_of(run, 0.05, 0.03)
    factors = dict(zip(equal, (1.0, 1.1, 1.0, 1.1), strict=True))
    different = {arm: faster(of_arm, factors[arm]) for arm, of_arm in equal.items()}
    assert steps.launch_spread([]) == steps.LAUNCH_SPREAD
    assert steps.launch_spread([equal]) < 0.02 < steps.launch_spread([different] * 5)
    few, many = (steps.of_next_launch(LONG, "gate", [(runs, 10.0)] * 5) for runs in (different, equal))
    assert few < many


def faster(run, factor):
    seconds = tuple(value / factor for value in run.steps.seconds)
    return msgspec.structs.replace(run, steps=msgspec.structs.replace(run.steps, seconds=seconds))


def test_the_first_launch_has_a_fixed_number_of_steps_and_a_short_one_three(run):
    assert steps.of_next_launch("long", "gate", []) == steps.FIRST
    calm, disturbed = (runs_of(run, 0.05, 0.005), 10.0), (runs_of(run, 0.05, 0.1), 10.0)
    spread = steps.launch_spread([runs for runs, _ in (disturbed, calm, calm)])
    assert steps.of_next_launch("long", "gate", [disturbed, calm, calm]) == steps.best_count(*calm, spread)
    assert steps.of_next_launch("short", "smoke", []) == 3
    assert steps.of_next_launch("long", "quick", []) is None


def test_long_launches_of_a_model_of_the_user_measure_memory():
    """Three steps do not show what stays until Python collects garbage."""
    metrics = {metric.name: metric for metric in of_subject(METRICS, tuned=False)}
    assert metrics["host-memory"].kinds == metrics["step"].kinds == (LONG,)
    assert of_subject(METRICS, tuned=True) == METRICS


def test_a_short_launch_of_a_model_of_the_user_has_the_scale_of_the_others():
    settings = Settings(device="cpu")
    assert launch_settings("short", "gate", settings, tuned=False)[0] == "gate"
    assert launch_settings("warm", "gate", settings, tuned=False)[0] == "smoke"
    assert launch_settings("short", "gate", settings)[0] == "smoke"


def test_only_the_launches_of_a_built_in_task_that_measure_memory_return_what_is_freed():
    """With the allocator as it is, the peak memory of JAX has several levels."""
    settings = Settings(device="cpu")
    found = {
        (kind, tuned): launch_settings(kind, "gate", settings, tuned=tuned)[1].malloc
        for kind in (SHORT, LONG, LATENCY)
        for tuned in (True, False)
    }
    assert {key for key, malloc in found.items() if malloc != "plain"} == {(SHORT, True)}
    assert found[SHORT, True] == "mmap"


def test_the_launches_of_a_kind_have_their_number_of_steps():
    assert steps.of_next_launch(LATENCY, "gate", []) == KINDS[LATENCY].steps
    assert steps.of_next_launch(NEW_BATCH, "smoke", []) == steps.of_next_launch(SHORT, "smoke", [])


@pytest.mark.parametrize(
    ("budget", "cells", "metrics", "expected"),
    [(240, 1, 2, 5.0), (240, 2, 2, 2.5), (2400, 1, 1, 100.0), (0, 1, 2, steps.LEAST_LIMIT)],
)
def test_the_limit_of_a_launch_is_a_share_of_the_budget(budget, cells, metrics, expected):
    named = [METRICS[0], METRICS[3]][:metrics]
    settings = Settings(device="cpu", threads=1)
    some = tuple(Cell("gru", phase) for phase in ("infer", "train")[:cells])
    trial = Trial(ORACLE, ORACLE, some, tuple(named), settings, seed=0, budget=budget)
    assert steps.limit(trial) == expected
    assert steps.limit(trial, most=3.0) == max(min(expected, 3.0), steps.LEAST_LIMIT)
    assert steps.limit(dataclasses.replace(trial, settings=dataclasses.replace(settings, devices=2))) is None
