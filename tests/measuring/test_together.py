"""Launches at the same time: what they return, where they run, and how they end."""

import os
import threading
from pathlib import Path

import pytest

from stele.measuring import processors, worker
from stele.measuring.together import together
from stele.measuring.worker import WorkerError


def test_what_the_functions_return_is_in_their_order():
    first = threading.Event()
    assert together([(lambda: first.wait(60) and "slow", None), (lambda: first.set() or "fast", None)]) == [
        "slow",
        "fast",
    ]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system does not pin")
def test_each_function_is_pinned_to_its_processors():
    number = processors.usable()[-1]
    assert together([(processors.usable, [number]), (processors.usable, None)]) == [[number], processors.usable()]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_if_one_raises_the_workers_of_the_others_end(error, scripted):
    started, ended = threading.Event(), threading.Event()

    def wait():
        live = scripted(train="hang", timeout=300.0)
        started.set()
        try:
            live.ask("train")
        except WorkerError:
            ended.set()
            raise

    def fail():
        started.wait(60)
        raise error

    with pytest.raises(error):
        together([(wait, None), (fail, None)])
    assert ended.is_set()


def test_workers_of_one_name_have_logs_of_their_own(tmp_path):
    paths = [worker.unused(tmp_path / "parity.log") for _ in range(3)]
    assert [Path(path).name for path in paths] == ["parity.log", "parity-2.log", "parity-3.log"]
    worker._logs.difference_update(paths)
