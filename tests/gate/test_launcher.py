"""How many passes are measured at the same time, and on which processors."""

import dataclasses

import pytest

from stele.environments import ORACLE
from stele.gate import launcher
from stele.gate.launcher import Launcher, parallel_passes
from stele.gate.metrics import (
    KINDS,
    METRICS,
    WARM,
)
from stele.gate.trial import Trial
from stele.measuring import machine, measure, processors
from stele.measuring.run import Memory
from stele.measuring.settings import Settings
from stele.subjects import Cell
from tests.support.gates import CELL, CPU, INPUTS, trial_with

GIB = 2**30


class Run:
    def __init__(self, host):
        self.memory = Memory(host=host, device=None)


@pytest.fixture
def count(monkeypatch):
    """count(cores=..., memory=...) -> how many passes are measured at the same time on such a machine."""

    def count(*, cores=4, memory=64, earlier=(), busy=False, parallel=2, **settings):
        settings = Settings(**{"device": "cpu", "threads": 1, **settings})
        monkeypatch.setattr(processors, "one_per_core", lambda: list(range(cores)))
        monkeypatch.setattr(machine, "available_memory", lambda: memory * GIB)
        cells = (Cell("gru", "infer"),)
        trial = Trial(ORACLE, ORACLE, cells, METRICS, settings, seed=0, budget=60, parallel=parallel)
        return parallel_passes(trial, earlier, busy=busy)

    return count


def runs(gib):
    return [{arm: Run(gib and gib * GIB) for arm in launcher.ARMS}]


def test_two_passes_run_at_the_same_time_on_two_cores(count):
    assert count(cores=2) == 2
    assert count(cores=8) == 2


@pytest.mark.parametrize(
    "machine",
    [
        {"cores": 1},
        {"cores": 3, "threads": 2},
        {"memory": 16},  # not enough for eight processes that nobody has measured
        {"memory": 16, "earlier": runs(3)},
        {"busy": True},
        {"parallel": 1},
        {"device": "cuda"},
    ],
    ids=["one core", "too few cores", "unmeasured", "large", "busy", "option", "gpu"],
)
def test_one_pass_runs_alone_if_there_is_no_room_for_two(count, machine):
    assert count(**machine) == 1


def test_the_memory_of_earlier_passes_says_how_many_fit(count):
    assert count(memory=16, earlier=runs(1)) == 2
    assert count(memory=10, earlier=runs(None)) == 1


@pytest.mark.parametrize(
    ("timed", "device", "expected", "together"),
    [
        (True, "cpu", [list(launcher.ARMS)], False),
        (False, "cpu", [[arm] for arm in launcher.ARMS], True),
        (False, "cuda", [[arm] for arm in launcher.ARMS], False),
    ],
)
def test_arms_that_are_not_timed_have_processors_of_their_own(monkeypatch, timed, device, expected, together):
    monkeypatch.setattr(measure, "inputs", lambda task: (INPUTS, None))
    monkeypatch.setattr(processors, "usable", lambda: [0, 1, 2, 3])
    settings, cell = Settings(device=device, threads=1), Cell("gru", "train")
    trial = Trial(ORACLE, ORACLE, (cell,), METRICS, settings, seed=0, budget=60)
    plans = (launcher.plan_of(cell, "gate", trial.subject),)
    request = Launcher(trial, plans, settings, timed=timed).request([launcher.ARMS])
    assert [list(lane) for lane in request["lanes"]] == expected
    assert (request["groups"] is not None) == together


def test_the_caches_are_filled_once_for_each_release(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    launched = []

    def measure_lanes(lanes, plans, settings, *, timeout, caches, **_):
        launched.extend(map(list, lanes))
        for environment in lanes[0].values():
            (caches / environment.slug).mkdir(parents=True, exist_ok=True)
        return [dict.fromkeys(lane, (None,)) for lane in lanes]

    monkeypatch.setattr(measure, "measure_lanes", measure_lanes)
    new = dataclasses.replace(ORACLE, name="numpy-new")
    trial = dataclasses.replace(trial_with(["first-step-cached"]), new=new)
    launch = Launcher(trial, (launcher.plan_of(CELL, "smoke", trial.subject, 3),), CPU, KINDS[WARM])
    for _ in range(2):
        launch.request([["old", "new"]])
    assert launched == [["old"], ["new"]]


def test_caches_that_were_not_filled_completely_are_removed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def fail(*_, caches, **__):
        (caches / ORACLE.slug).mkdir(parents=True)
        raise KeyboardInterrupt

    monkeypatch.setattr(measure, "side_by_side", fail)
    trial = trial_with(["first-step-cached"])
    launch = Launcher(trial, (launcher.plan_of(CELL, "smoke", trial.subject, 3),), CPU, KINDS[WARM])
    with pytest.raises(KeyboardInterrupt):
        launch.launch([["old"]])
    assert not list(tmp_path.rglob(ORACLE.slug))
