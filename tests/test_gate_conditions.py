"""Conditions: what disqualifies a launch is never what it measured."""

import subprocess
import sys
import time

import pytest

from stele.gate import conditions
from stele.gate.conditions import Conditions, Watch
from stele.measuring.settings import Settings

QUIET = Conditions(seconds=3.0, steal=0.0, foreign=0.0, gpu=None)


def gpu(reasons):
    return {"clocks.sm": "1980", "clocks_throttle_reasons.active": reasons}


@pytest.mark.parametrize(
    "condition",
    [
        QUIET,
        QUIET._replace(foreign=0.9),  # a busy neighbour is everybody's, and would leave nothing to judge
        QUIET._replace(steal=None, foreign=None),
        QUIET._replace(steal=0.5, seconds=0.04),  # a hundredth of a second is all the kernel counts
        QUIET._replace(gpu=gpu("0x0000000000000001")),  # idle
        QUIET._replace(gpu=gpu("[N/A]")),
        QUIET._replace(gpu={}),
    ],
)
def test_what_counts(condition):
    assert condition.excluded is None


@pytest.mark.parametrize(
    "condition, reason",
    [
        (QUIET._replace(steal=0.06), "the hypervisor took 6% of the processors"),
        (QUIET._replace(gpu=gpu("0x0000000000000040")), "the GPU was throttled"),
    ],
)
def test_what_does_not(condition, reason):
    assert condition.excluded == reason


def test_a_foreign_process_is_seen():
    spin = [sys.executable, "-c", "import time; end = time.time() + 0.4\nwhile time.time() < end: pass"]
    with subprocess.Popen(spin):
        watch = Watch(Settings(device="cpu", threads=1))
        time.sleep(0.3)
        seen = watch.conditions()
    assert seen.foreign is None or seen.foreign > 0.05


def test_a_machine_that_tells_nothing_leaves_it_unknown(monkeypatch):
    monkeypatch.setattr(conditions, "times", dict)
    found = Watch(Settings(device="cpu", threads=1)).conditions()
    assert (found.steal, found.foreign, found.excluded) == (None, None, None)


def test_without_an_nvidia_driver_there_is_no_gpu(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert conditions.gpu() is None


def test_a_gpu_is_looked_at_while_it_works_and_the_worst_look_counts(monkeypatch):
    looks = iter([gpu("0x0"), gpu("0x40"), *[gpu("0x0")] * 1000])
    monkeypatch.setattr(conditions, "gpu", lambda: next(looks))
    monkeypatch.setattr(conditions, "SECOND", 0.01)
    watch = Watch(Settings(device="cuda", threads=1))
    time.sleep(0.2)
    assert watch.conditions().excluded == "the GPU was throttled"


def test_stolen_time_is_that_of_the_processors_in_use(monkeypatch):
    found = iter([{"cpu": (0, 0, 0), "cpu0": (0, 0, 0)}, {"cpu": (5, 30, 1), "cpu0": (1, 0, 1)}])
    monkeypatch.setattr(conditions, "times", lambda: next(found))
    monkeypatch.setattr(conditions, "pinned", lambda threads: ["cpu0"])
    assert Watch(Settings(device="cpu", threads=1)).conditions().steal == 0.5
