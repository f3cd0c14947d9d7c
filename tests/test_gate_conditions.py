"""Conditions: what disqualifies a launch is never what it measured."""

import subprocess
import sys
import time

import pytest

from stele.gate import conditions
from stele.gate.conditions import Conditions, Watch

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
    assert condition.unfit is None


@pytest.mark.parametrize(
    "condition, reason",
    [
        (QUIET._replace(steal=0.06), "the hypervisor took 6% of the processors"),
        (QUIET._replace(gpu=gpu("0x0000000000000040")), "the GPU was throttled"),
    ],
)
def test_what_does_not(condition, reason):
    assert condition.unfit == reason


def test_a_foreign_process_is_seen():
    spin = [sys.executable, "-c", "import time; end = time.time() + 0.4\nwhile time.time() < end: pass"]
    with subprocess.Popen(spin):
        watch = Watch("cpu")
        time.sleep(0.3)
        seen = watch.conditions()
    assert seen.foreign is None or seen.foreign > 0.05


def test_a_machine_that_tells_nothing_leaves_it_unknown(monkeypatch):
    monkeypatch.setattr(conditions, "times", lambda: None)
    found = Watch("cpu").conditions()
    assert (found.steal, found.foreign, found.unfit) == (None, None, None)


def test_without_an_nvidia_driver_there_is_no_gpu(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert conditions.gpu() is None
