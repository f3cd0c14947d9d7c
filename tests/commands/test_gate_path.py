"""How many functions of Stele a gate calls until it asks a worker."""

import sys
import threading
import traceback
from pathlib import Path

import pytest

import stele
from stele import __main__ as entry_point
from stele.measuring.worker import Worker
from tests.support.gates import SECONDS

SOURCES = Path(stele.__file__).parent


def functions(thread):
    """Return the names of Stele's functions that are on the stack of a thread, the first caller first."""
    frames = [frame for frame, _ in traceback.walk_stack(sys._current_frames()[thread])]
    code = [frame.f_code for frame in reversed(frames)]
    return [each.co_name for each in code if Path(each.co_filename).is_relative_to(SOURCES)]


@pytest.mark.slow
def test_a_gate_asks_a_worker_after_eight_calls(add_environment, monkeypatch):
    paths, exchange = [], Worker.exchange

    def recorded(worker, verb, **fields):
        if verb == "infer":
            threads = dict.fromkeys([threading.main_thread().ident, threading.get_ident()])
            paths.append([*(name for thread in threads for name in functions(thread)), "exchange"])
        return exchange(worker, verb, **fields)

    monkeypatch.setattr(Worker, "exchange", recorded)
    add_environment("old", seconds=SECONDS)
    add_environment("new", seconds=SECONDS)
    entry_point.main(["gate", "old", "new", "--metric=step", "--task=gru", "--phase=infer", "--budget=1s"])
    [path] = {tuple(path[path.index("gate_pair") :]) for path in paths}
    assert len(path) <= 8, " -> ".join(path)
