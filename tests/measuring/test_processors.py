"""Which processors the launches of passes use."""

import sys
import time

import pytest

from stele.measuring import processors


def test_lanes_use_one_processor_of_each_core(monkeypatch):
    monkeypatch.setattr(processors, "usable", lambda: [0, 1, 2, 3])
    monkeypatch.setattr(processors, "siblings", lambda number: f"{number // 2 * 2}-{number // 2 * 2 + 1}")
    assert processors.one_per_core() == [0, 2]
    assert processors.lanes(1) == [[0], [2]]
    assert processors.lanes(2) == [[0, 2]]
    assert processors.lanes(2, of=processors.usable()) == [[0, 1], [2, 3]]
    assert processors.lanes(5, of=processors.usable()) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")
def test_the_usage_of_a_process_is_known_until_it_ends():
    before, start = processors.usage(), time.process_time()
    while time.process_time() - start < 0.05:
        pass
    after = processors.usage()
    assert after.computed - before.computed >= 0.04 and after.waited >= before.waited
    assert processors.usage(2**22 + 1) is None  # no process has this id
