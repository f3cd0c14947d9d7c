"""What a test says while it waits and while it measures."""

import os
import pty
import re
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from pytest_stele import progress
from stele.measuring import lock
from tests.support.suites import SUITE


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_test_that_waits_says_for_what(repository, monkeypatch, tmp_path, workers):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *SUITE, "-k", "inference", *workers]
    names = {"STELE_ENVIRONMENTS": str(tmp_path), "STELE_OFFLINE": "1", "STELE_DATA": ""}
    with (tmp_path / "output").open("w") as output:
        with lock.machine("stele gate a b", wait=True, say=print):
            running = subprocess.Popen(
                command, cwd=repository.folder, env={**os.environ, **names}, stdout=output, stderr=output
            )
            deadline = time.monotonic() + 60
            while "waiting for another" not in (text := (tmp_path / "output").read_text()):
                assert time.monotonic() < deadline and running.poll() is None, text
                time.sleep(0.1)
        assert running.wait(60) == 0
    assert "stele: waiting for another measurement on this machine: stele gate a b (process" in text


@pytest.fixture
def started(monkeypatch):
    """started(cache, *names) -> the Durations of a session with timed tests of these names; 41 s later."""

    def started(cache, *names):
        items = [
            SimpleNamespace(nodeid=name, fixturenames=["stele_measure"], get_closest_marker=lambda name: None)
            for name in names
        ]
        other = SimpleNamespace(nodeid="other", fixturenames=[], get_closest_marker=lambda name: None)
        memory = SimpleNamespace(get=cache.get, set=cache.__setitem__)
        config = SimpleNamespace(cache=memory, pluginmanager=SimpleNamespace(register=lambda plugin: None))
        monkeypatch.setattr(progress, "perf_counter", lambda: 0.0)
        durations = progress.Durations(SimpleNamespace(config=config, items=[*items, other]), "quick")
        monkeypatch.setattr(progress, "perf_counter", lambda: 41.0)
        return durations

    return started


def ended(name, seconds, when="call"):
    return SimpleNamespace(nodeid=name, duration=seconds, when=when)


def test_the_time_left_is_that_of_an_earlier_session_or_the_mean_of_the_others(started):
    cache = {}
    first = started(cache, "a", "b")
    assert str(first) == "1 of 2, 0:41 so far"
    first.pytest_runtest_logreport(ended("a", 600.0, when="setup"))  # it waited for the machine
    first.pytest_runtest_logreport(ended("other", 600.0))
    first.pytest_runtest_logreport(ended("a", 41.0))
    assert str(first) == "2 of 2, 0:41 so far, about 0:41 left"
    first.pytest_runtest_logreport(ended("b", 99.0))
    first.pytest_sessionfinish()
    assert str(started(cache, "a", "b")) == "1 of 2, 0:41 so far, about 2:20 left"
    assert str(started(cache, "a", "b", "c")) == "1 of 3, 0:41 so far, about 3:30 left"


@pytest.mark.slow
def test_a_terminal_shows_the_time_so_far_and_the_time_left(repository, tmp_path):
    screen, terminal = pty.openpty()
    names = {"STELE_ENVIRONMENTS": str(tmp_path), "STELE_CACHE": str(tmp_path / "cache"), "STELE_OFFLINE": "1"}
    variables = {**os.environ, **names, "STELE_DATA": "", "TERM": "xterm", "COLUMNS": "100"}
    command = [sys.executable, "-m", "pytest", *SUITE, "--benchmark-only"]
    with subprocess.Popen(command, cwd=repository.folder, env=variables, stdout=terminal, stderr=terminal):
        os.close(terminal)
        shown = b"".join(iter(lambda: read(screen), b"")).decode()
    os.close(screen)
    assert re.search(r"1 of 2, \d:\d\d so far: steady gru infer", shown)
    assert re.search(r"2 of 2, \d:\d\d so far, about \d:\d\d left: steady gru train", shown)
    assert f"\x1b[A\x1b[{len('test_training.py ') + 1}G" in shown  # the line of pytest goes on after the bar


def read(descriptor):
    try:
        return os.read(descriptor, 2**16)
    except OSError:  # Linux: the other end was closed
        return b""
