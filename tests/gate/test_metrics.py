"""The metrics that are judged only if they are selected: blocks of steps, one sample, caches, another batch size."""

import dataclasses
import math
import re
from pathlib import Path

import numpy
import pytest

from stele.environments import ORACLE
from stele.gate import steps
from stele.gate.launcher import plan_of
from stele.gate.metrics import (
    ALL,
    KINDS,
    LATENCY,
    LONG,
    METRICS,
    MORE,
    PEAK,
    SHORT,
    launch_settings,
    parse_thresholds,
    with_thresholds,
)
from stele.gate.trial import ARMS
from stele.measuring import measure
from stele.subjects import Cell, Tasks
from tests.support.gates import BY_NAME, CELL, CPU, runs_of
from tests.support.runs import changed


def test_compilations_are_those_that_the_framework_reports(run):
    def count(in_force):
        return BY_NAME["compilations"].value(changed(run, in_force=in_force))

    assert count({"graphs": 2, "recompilations": 1, "graph_breaks": 3}) == 2  # the second graph is the repetition
    assert [count({"traces": 2}), count({"programs": 2, "operations": 310}), count({"compilations": 1})] == [
        2,
        2,
        1,
    ]
    assert count({"graphs": 0}) is None and count(None) is None


def test_the_overhead_is_unknown_if_a_line_has_nothing_at_zero(run):
    def value(sizes):
        return BY_NAME["overhead"].value(changed(run, sizes=sizes))

    assert value({"8": [1.0] * 4, "16": [1.5] * 4}) == pytest.approx(0.5)
    assert value({"8": [1.0] * 4, "16": [2.5] * 4}) is None and value(None) is None


def test_a_step_is_idle_outside_of_operations(run):
    def value(busy):
        profile = {"step": 2.0, "busy": busy, "operations": {}, "kernels": {}}
        return BY_NAME["idle"].value(changed(run, profile=profile))

    assert value(1.5) == 0.25
    assert value(2.5) is None  # threads of a framework compute at the same time
    assert value(None) is None and BY_NAME["idle"].value(run) is None


def test_a_launch_that_is_not_asked_has_no_number():
    plan = plan_of(CELL, "smoke", Tasks(), 3)
    run = measure.side_by_side({"a": ORACLE}, plan, CPU)["a"]
    assert run.blocks is None and run.new_batch is None
    assert BY_NAME["throughput"].values({"old": run, "new": run}) is None
    assert BY_NAME["first-step-new-batch"].values({"old": run, "new": run}) is None


def test_the_latency_is_of_one_sample():
    kind = KINDS[LATENCY]
    plan = plan_of(Cell("gru", "infer"), "smoke", Tasks(), 6, kind)
    run = measure.side_by_side({"a": ORACLE}, plan, CPU)["a"]
    assert run.steps.batch == 1
    assert BY_NAME["latency"].value(run) <= BY_NAME["latency-p99"].value(run)


def test_the_peak_memory_is_of_the_scale_of_the_timed_launches():
    steady = dataclasses.replace(CPU, malloc="steady")
    assert launch_settings(SHORT, "depth-64", steady) == ("smoke", dataclasses.replace(CPU, malloc="mmap"))
    assert launch_settings(PEAK, "depth-64", steady) == ("depth-64", dataclasses.replace(CPU, malloc="plain"))
    assert launch_settings(LONG, "depth-64", steady) == ("depth-64", steady)
    assert steps.of_next_launch(PEAK, "depth-64", []) == 3


def test_the_peak_memory_is_that_of_the_device_if_it_has_its_own(run):
    value = BY_NAME["peak-memory"].value
    assert value(changed(run, memory={"host": 7, "device": None})) == 7
    assert value(changed(run, memory={"host": 7, "device": 5})) == 5


def test_every_metric_has_a_unit_and_a_sentence():
    for metric in ALL:
        assert metric.unit in ("s", "bytes", "count", "fraction")
        assert metric.meaning.endswith(".") and metric.meaning[0].isupper()
    assert len({metric.name for metric in ALL}) == len(ALL)


def test_the_page_of_the_gate_has_the_thresholds_of_every_metric():
    page = (Path(__file__).parents[2] / "docs/gate.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?)( \*)? \| (\d+) % \| (\d+) % \|$", page, re.M)
    found = {
        name: (int(tolerance) / 100, int(margin) / 100, bool(selected))
        for names, selected, tolerance, margin in rows
        for name in re.findall(r"`(\w[\w-]+)`", names)
    }
    assert found == {one.name: (one.tolerance, one.margin, one in MORE) for one in ALL}


STEP = METRICS[0]


def test_steps_are_compared_with_those_of_the_same_turn(run):
    """A disturbance that slows all arms for some steps changes nothing."""
    runs = runs_of(run, 0.1)
    disturbed = {
        arm: changed(
            one, steps={"seconds": (*one.steps.seconds[:10], *(3 * value for value in one.steps.seconds[10:]))}
        )
        for arm, one in runs.items()
    }
    assert STEP.values(disturbed) == pytest.approx(STEP.values(runs))


def test_steps_without_turns_are_compared_by_their_tenth_percentile(run):
    runs = {arm: changed(one, options={"turn": None}) for arm, one in runs_of(run, 0.1).items()}
    expected = {arm: math.log(numpy.percentile(one.counted_seconds, 10)) for arm, one in runs.items()}
    assert STEP.values(runs) == pytest.approx(expected)
    assert STEP.values(runs) != pytest.approx(STEP.values(runs_of(run, 0.1)))


def test_a_metric_of_which_one_launch_has_no_number_is_unknown(run):
    memory = next(metric for metric in METRICS if metric.name == "host-memory")
    runs = {**dict.fromkeys(ARMS, run), "repeat": changed(run, memory={"host": None})}
    assert memory.values(runs) is None


def test_thresholds_are_parsed():
    assert parse_thresholds("--margin", ["2%", "host-memory=10%"]) == {"step": 0.02, "host-memory": 0.10}


def test_a_margin_is_raised_to_its_tolerance_and_a_tolerance_lowered_to_its_margin():
    metrics = {metric.name: metric for metric in with_thresholds({"host-memory": 0.08}, {"import": 0.02})}
    assert (metrics["host-memory"].tolerance, metrics["host-memory"].margin) == (0.08, 0.08)
    assert (metrics["import"].tolerance, metrics["import"].margin) == (0.02, 0.02)
    assert (metrics["step"].tolerance, metrics["step"].margin) == (0.01, 0.05)
