"""The slots of a node."""

import threading
import time

from stele.fleet import slots


def test_numa_nodes_are_slots(tmp_path, monkeypatch):
    for number, text in enumerate(["0-3,8", "4-7"]):
        (tmp_path / f"node{number}").mkdir()
        (tmp_path / f"node{number}/cpulist").write_text(text)
    monkeypatch.setattr(slots, "NODES", tmp_path)
    monkeypatch.setattr(slots.processors, "usable", lambda: [0, 1, 4, 5, 8])
    assert slots.slots() == [slots.Slot(0, (0, 1, 8)), slots.Slot(1, (4, 5))]


def test_two_measurements_never_have_one_slot(tmp_path, monkeypatch):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    monkeypatch.setattr(slots, "slots", lambda: [slots.Slot(0, (0,)), slots.Slot(1, (0,))])
    monkeypatch.setattr(slots, "POLL", 0.01)
    held, most, guard = set(), [], threading.Lock()

    def measure():
        with slots.slot_for("a cell", "cpu", lambda text: None) as slot:
            with guard:
                assert slot.number not in held
                held.add(slot.number)
                most.append(len(held))
            time.sleep(0.02)
            with guard:
                held.remove(slot.number)

    threads = [threading.Thread(target=measure) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 6 and max(most) <= 2
