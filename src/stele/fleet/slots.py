"""Keep the measurements on a machine apart: each has a NUMA node of its own, with all its cores and devices.

Measurements outside of a fleet lock the whole machine (``stele.measuring.lock``). So a suite waits until the cells of a
fleet have ended, and the other way round.
"""

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from stele.measuring import lock, nvml, processors

NODES = Path("/sys/devices/system/node")
DEVICES = Path("/sys/bus/pci/devices")
POLL = 0.2  # seconds between two attempts


class Slot(NamedTuple):
    """A NUMA node, and the processors of it that this process may use."""

    number: int
    processors: tuple[int, ...]


def slots() -> list[Slot]:
    """Return the NUMA nodes of this machine that have usable processors; one with all if the system names none."""
    usable = processors.usable()
    if usable is None:
        return [Slot(0, ())]
    paths = sorted(NODES.glob("node[0-9]*"), key=lambda path: int(path.name[4:]))
    nodes = [
        Slot(int(path.name[4:]), tuple(number for number in numbers_in(path / "cpulist") if number in usable))
        for path in paths
    ]
    return [slot for slot in nodes if slot.processors] or [Slot(0, tuple(usable))]


def numbers_in(path: Path) -> list[int]:
    """Return the numbers in a list such as ``0-3,8-11``; nothing if the file cannot be read."""
    try:
        ranges = re.findall(r"(\d+)(?:-(\d+))?", path.read_text())
    except OSError:
        return []
    return [number for first, last in ranges for number in range(int(first), int(last or first) + 1)]


def of_gpu(device: str) -> int | None:
    """Return the NUMA node of a GPU, as CUDA_VISIBLE_DEVICES names it; None if the system does not say."""
    place = nvml.bus_id(device)
    if place is None:
        return None
    try:
        node = int((DEVICES / place / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


@contextlib.contextmanager
def slot_for(what: str, device: str, say: Callable[[str], object]) -> Iterator[Slot]:
    """Take a NUMA node and pin this process to it; wait while all are taken.

    For a GPU, it is the NUMA node of the GPU that CUDA_VISIBLE_DEVICES names. ``say`` is told what this waits for.
    """
    candidates = slots()
    if device != "cpu":
        near = of_gpu(os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0])
        candidates = [slot for slot in candidates if slot.number == near] or candidates
    with lock.machine(what, wait=True, say=say, shared=True), contextlib.ExitStack() as stack:
        slot = wait_for(candidates, stack)
        with processors.pinned(slot.processors or None):
            yield slot


def wait_for(candidates: list[Slot], stack: contextlib.ExitStack) -> Slot:
    """Return the first of these slots that is free, and hold its lock until the stack is closed."""
    locks = [stack.enter_context(lock.opened(f"{slot.number}-{lock.file_name()}")) for slot in candidates]
    while True:
        for slot, lock_of_slot in zip(candidates, locks, strict=True):
            if lock.find_taken(lock_of_slot) is None:
                return slot
        time.sleep(POLL)
