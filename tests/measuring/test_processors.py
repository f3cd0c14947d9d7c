"""Which processors the launches of passes use."""

from stele.measuring import processors


def test_lanes_use_one_processor_of_each_core(monkeypatch):
    monkeypatch.setattr(processors, "usable", lambda: [0, 1, 2, 3])
    monkeypatch.setattr(processors, "siblings", lambda number: f"{number // 2 * 2}-{number // 2 * 2 + 1}")
    assert processors.one_per_core() == [0, 2]
    assert processors.lanes(1) == [[0], [2]]
    assert processors.lanes(2) == [[0, 2]]
    assert processors.lanes(2, of=processors.usable()) == [[0, 1], [2, 3]]
    assert processors.lanes(5, of=processors.usable()) == []
