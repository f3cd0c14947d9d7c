"""The processors that this process may use, and those that launches at the same time use apart from each other."""

import contextlib
import functools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

CORE = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def usable() -> list[int] | None:
    """Return the numbers of the processors that this process may use; None if the system does not say."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def count() -> int:
    """Return the number of processors that this process may use."""
    numbers = usable()
    return (os.cpu_count() or 1) if numbers is None else len(numbers)


def one_per_core() -> list[int]:
    """Return one processor of each core: two hardware threads of one core slow each other down."""
    first: dict[str, int] = {}
    for number in usable() or []:
        first.setdefault(siblings(number), number)
    return sorted(first.values())


@functools.cache
def siblings(number: int) -> str:
    """Return what identifies the core of a processor; the number itself if the system does not say."""
    try:
        return Path(CORE.format(number)).read_text().strip()
    except OSError:
        return str(number)


class Usage(NamedTuple):
    """The seconds in which the threads of a process computed, and in which they waited for a processor."""

    computed: float
    waited: float


def usage(pid: int | str = "self") -> Usage | None:
    """Return the Usage of a process, of the threads that it has now; None if the system does not say."""
    texts = []
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # the thread has ended
            texts.append(path.read_text())
    if not texts:
        return None
    computed, waited = (sum(int(text.split()[place]) for text in texts) / 1e9 for place in (0, 1))
    return Usage(computed, waited)


def lanes(threads: int, *, of: list[int] | None = None) -> list[list[int]]:
    """Return disjoint groups of ``threads`` processors, as many as there are among ``of``, which are one per core."""
    numbers = one_per_core() if of is None else of
    return [numbers[first : first + threads] for first in range(0, len(numbers) - threads + 1, threads)]


@contextlib.contextmanager
def pinned(numbers: Sequence[int] | None) -> Iterator[None]:
    """Pin what is started in this block to these processors; None for all that this process may use."""
    if numbers is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, numbers)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
