import dataclasses

import pytest

from stele.measuring.settings import Settings
from stele_worker import process, verbs
from tests.support.numpy_framework import framework


@pytest.mark.parametrize(("device", "limits"), [("cpu", [2]), ("cuda", [])])
def test_the_threads_that_give_work_to_a_gpu_may_use_all_processors(device, limits, monkeypatch):
    limited = []
    monkeypatch.setattr(process, "limit_processors", lambda count, part=0: limited.append(count))
    on_any_device = framework(configure=lambda settings: None)
    monkeypatch.setattr(verbs.frameworks, "load", lambda name: on_any_device)
    monkeypatch.setattr(verbs, "configuration", {})
    settings = dataclasses.asdict(Settings(device=device, threads=2))
    verbs.configure(None, "fake", {**settings, "devices": 1})
    assert limited == limits


class ScriptedClock:
    """A clock that only moves in sleep. Threads of this process compute until ``busy`` seconds have passed."""

    def __init__(self, busy):
        self.busy, self.now = busy, 0.0

    def perf_counter(self):
        return self.now

    def process_time(self):
        return min(self.now, self.busy)

    def sleep(self, seconds):
        self.now += seconds


@pytest.mark.parametrize(("busy", "waited"), [(0.0, process.LOOK), (0.2, 0.2 + process.LOOK), (9.0, process.LONGEST)])
def test_a_turn_ends_when_the_threads_of_a_worker_are_idle(monkeypatch, busy, waited):
    clock = ScriptedClock(busy)
    monkeypatch.setattr(process, "time", clock)
    process.wait_until_idle()
    assert clock.now == pytest.approx(waited, abs=process.LOOK)
