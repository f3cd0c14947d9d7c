"""How many steps a launch times."""

import dataclasses

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
    counts = [steps.best_count(runs_of(run, seconds, 0.03), 40 + 4 * 25 * seconds) for seconds in (0.01, 0.2, 2.0)]
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
    assert steps.limit(dataclasses.replace(trial, settings=dataclasses.replace(settings, devices=2))) is None
