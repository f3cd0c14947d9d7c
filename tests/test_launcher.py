"""How many passes are measured at the same time, and on which processors."""

from types import SimpleNamespace

import psutil
import pytest

from stele.environments import ORACLE
from stele.gate import launcher
from stele.gate.launcher import passes_at_once
from stele.gate.metrics import METRICS
from stele.gate.trial import ARMS, Cell, Trial
from stele.measuring import machine, measure, processors
from stele.measuring.settings import Settings

GIB = 2**30


class Run:
    def __init__(self, host_memory):
        self.host_memory = host_memory


@pytest.fixture
def count(monkeypatch):
    """count(cores=..., memory=...) -> how many passes are measured at the same time on such a machine."""

    def count(*, cores=4, memory=64, earlier=(), busy=False, at_once=2, **settings):
        settings = Settings(**{"device": "cpu", "threads": 1, **settings})
        monkeypatch.setattr(processors, "one_per_core", lambda: list(range(cores)))
        monkeypatch.setattr(machine, "available_memory", lambda: memory * GIB)
        cells = (Cell("gru", "infer"),)
        trial = Trial(ORACLE, ORACLE, cells, METRICS, settings, seed=0, budget=60, at_once=at_once)
        return passes_at_once(trial, earlier, busy=busy)

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
        {"at_once": 1},
        {"device": "cuda"},
    ],
    ids=["one core", "too few cores", "unmeasured", "large", "busy", "option", "gpu"],
)
def test_one_pass_runs_alone_if_there_is_no_room_for_two(count, machine):
    assert count(**machine) == 1


def test_the_memory_of_earlier_passes_says_how_many_fit(count):
    assert count(memory=16, earlier=runs(1)) == 2
    assert count(memory=10, earlier=runs(None)) == 1


def test_lanes_use_one_processor_of_each_core(monkeypatch):
    monkeypatch.setattr(processors, "usable", lambda: [0, 1, 2, 3])
    monkeypatch.setattr(processors, "siblings", lambda number: f"{number // 2 * 2}-{number // 2 * 2 + 1}")
    assert processors.one_per_core() == [0, 2]
    assert processors.lanes(1) == [[0], [2]]
    assert processors.lanes(2) == [[0, 2]]
    assert processors.lanes(2, of=processors.usable()) == [[0, 1], [2, 3]]
    assert processors.lanes(5, of=processors.usable()) == []


def test_a_container_limits_the_memory(monkeypatch):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=8192 * 1024))
    files = {"/sys/fs/cgroup/memory.current": "1024"}
    monkeypatch.setattr(machine, "read_text", files.get)
    assert machine.available_memory() == 8192 * 1024
    files["/sys/fs/cgroup/memory.max"] = "max"
    assert machine.available_memory() == 8192 * 1024
    files["/sys/fs/cgroup/memory.max"] = "5120"
    assert machine.available_memory() == 4096


@pytest.fixture
def lanes(monkeypatch):
    """The arms that are measured at the same time, lane by lane."""
    measured = []

    def at_once(lanes, *_, **__):
        measured.append([list(lane) for lane in lanes])
        return [dict.fromkeys(lane) for lane in lanes]

    monkeypatch.setattr(measure, "at_once", at_once)
    monkeypatch.setattr(measure, "inputs", lambda task: ({"data": None, "data_origin": {}}, None))
    monkeypatch.setattr(processors, "usable", lambda: [0, 1])
    return measured


def launch(arms, *, device="cpu", timed=True):
    settings, cell = Settings(device=device, threads=1), Cell("gru", "train")
    trial = Trial(ORACLE, ORACLE, (cell,), METRICS, settings, seed=0, budget=60)
    launched = launcher.Launcher(trial, cell, settings, "gate", timed=timed)
    launcher.measure_arms(launched, arms, timeout=9)


def test_launches_on_a_gpu_run_one_after_the_other(lanes):
    launch(ARMS)
    assert lanes == [[list(ARMS)]]
    lanes.clear()
    launch(ARMS, device="cuda")
    assert lanes == [[[arm]] for arm in ARMS]


def test_trainings_that_are_not_timed_run_at_the_same_time_on_processors_of_their_own(lanes):
    launch(("old", "new"), timed=False)
    assert lanes == [[["old"], ["new"]]]
