"""Conditions: a launch is excluded because of its conditions, never because of what it measured."""

import subprocess
import sys
import time

import pytest
from msgspec.structs import replace

from stele.measuring import conditions
from stele.measuring.conditions import Conditions, Monitor
from stele.measuring.settings import Settings

QUIET = Conditions(seconds=3.0, steal=0.0, foreign=0.0, gpu=None)


def gpu(reasons):
    return {"clocks.sm": "1980", "clocks_throttle_reasons.active": reasons}


@pytest.mark.parametrize(
    "condition",
    [
        QUIET,
        replace(QUIET, foreign=0.9),  # foreign load is common: to exclude it would exclude every launch
        replace(QUIET, steal=None, foreign=None),
        replace(QUIET, steal=0.3),  # the launches take turns, so all of them are hit
        replace(QUIET, gpu=gpu("0x0000000000000001")),  # idle
        replace(QUIET, gpu=gpu("[N/A]")),
        replace(QUIET, gpu={}),
    ],
)
def test_a_launch_counts(condition):
    assert condition.excluded is None


@pytest.mark.parametrize(
    "condition, reason",
    [
        (replace(QUIET, gpu=gpu("0x0000000000000040")), "the GPU was throttled"),
    ],
)
def test_a_launch_is_excluded(condition, reason):
    assert condition.excluded == reason


def test_a_foreign_process_is_detected():
    spin = [sys.executable, "-c", "import time; end = time.time() + 0.4\nwhile time.time() < end: pass"]
    with subprocess.Popen(spin):
        monitor = Monitor(Settings(device="cpu", threads=1))
        time.sleep(0.3)
        foreign = monitor.conditions().foreign
    assert foreign is None or foreign > 0.05


def test_without_proc_stat_the_shares_are_unknown(monkeypatch):
    monkeypatch.setattr(conditions, "processor_times", dict)
    result = Monitor(Settings(device="cpu", threads=1)).conditions()
    assert (result.steal, result.foreign, result.excluded) == (None, None, None)


def test_a_gpu_is_queried_during_the_launch_and_its_worst_state_counts(monkeypatch):
    states = iter([gpu("0x0"), gpu("0x40"), *[gpu("0x0")] * 1000])
    monkeypatch.setattr(conditions.nvml, "state", lambda: next(states))
    monkeypatch.setattr(conditions, "GPU_INTERVAL", 0.01)
    monitor = Monitor(Settings(device="cuda", threads=1))
    time.sleep(0.2)
    assert monitor.conditions().excluded == "the GPU was throttled"


def test_steal_counts_the_pinned_processors_only(monkeypatch):
    times = iter([{"cpu": (0, 0, 0), "cpu0": (0, 0, 0)}, {"cpu": (5, 30, 1), "cpu0": (1, 0, 1)}])
    monkeypatch.setattr(conditions, "processor_times", lambda: next(times))
    monkeypatch.setattr(conditions, "pinned_processors", lambda threads, lanes: ["cpu0"])
    assert Monitor(Settings(device="cpu", threads=1)).conditions().steal == 0.5


BUSY = {"cpu": (0.0, 0.0, 0.0), "cpu0": (0.0, 0.0, 0.0)}
LATER = {"cpu": (1.0, 1.0, 0.0), "cpu0": (0.5, 0.5, 0.0)}


@pytest.mark.parametrize("missing", [0, 1], ids=["before", "after"])
def test_without_the_times_of_a_pinned_processor_the_steal_is_unknown(monkeypatch, missing):
    """A container may not list it, and a processor may be taken away during a launch."""
    states = [dict(BUSY), dict(LATER)]
    del states[missing]["cpu0"]
    times = iter(states)
    monkeypatch.setattr(conditions, "processor_times", lambda: next(times))
    monkeypatch.setattr(conditions, "pinned_processors", lambda threads, lanes: ["cpu0"])
    result = Monitor(Settings(device="cpu", threads=1)).conditions()
    assert result.steal is None
    assert result.foreign is not None


def test_a_processor_that_appears_during_a_launch_is_ignored(monkeypatch):
    times = iter([BUSY, {**LATER, "cpu1": (0.5, 0.5, 0.0)}])
    monkeypatch.setattr(conditions, "processor_times", lambda: next(times))
    monkeypatch.setattr(conditions, "pinned_processors", lambda threads, lanes: ["cpu0"])
    assert Monitor(Settings(device="cpu", threads=1)).conditions().steal == 0


@pytest.mark.parametrize(
    ("condition", "stolen"),
    [
        (QUIET, False),
        (replace(QUIET, steal=0.06), True),
        (replace(QUIET, steal=0.5, seconds=0.04), False),  # too short: the kernel counts in hundredths of a second
        (replace(QUIET, steal=None), False),
    ],
)
def test_time_that_the_hypervisor_took_is_said(condition, stolen):
    assert condition.stolen == stolen


@pytest.mark.parametrize(
    ("condition", "busy"),
    [
        (QUIET, False),
        (replace(QUIET, foreign=0.3), True),
        (replace(QUIET, foreign=0.02), False),  # the services of a quiet machine
        (replace(QUIET, foreign=0.3, seconds=0.04), False),  # too short to count
        (replace(QUIET, foreign=None), False),
    ],
)
def test_a_machine_is_busy_if_other_processes_used_its_processors(condition, busy):
    assert condition.busy == busy


def test_the_time_of_a_worker_that_still_runs_is_not_foreign():
    spin = [sys.executable, "-c", "import time; end = time.time() + 0.6\nwhile time.time() < end: pass"]
    with subprocess.Popen(spin, start_new_session=True) as process:
        before = conditions.session_seconds(process.pid)
        time.sleep(0.4)
        used = conditions.session_seconds(process.pid) - before
    assert used > 0.05
    assert conditions.session_seconds(process.pid) == 0  # it has ended


def test_the_programs_that_use_the_machine_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(conditions, "MOST_NAMES", 100)
    spinner = tmp_path / "spinner"
    spinner.symlink_to(sys.executable)
    with subprocess.Popen([spinner, "-c", "while True: pass"]) as process:
        try:
            assert "spinner" in conditions.busiest(1.0)
        finally:
            process.kill()


def test_the_stolen_time_of_a_launch_on_a_gpu_is_that_of_all_processors(monkeypatch):
    monkeypatch.setattr(conditions.processors, "usable", lambda: [0, 1, 2])
    names = {device: conditions.pinned_processors(Settings(device=device, threads=2), 1) for device in ("cpu", "cuda")}
    assert names == {"cpu": ["cpu0", "cpu1"], "cuda": ["cpu0", "cpu1", "cpu2"]}
