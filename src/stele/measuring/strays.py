"""End the processes that a worker left behind: in another session, they are not in its process group. Linux only."""

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

# seconds in which a killed process ends, unless it waits for a disk or a device
TIMEOUT = 5.0
PAUSE = 0.01  # seconds between two looks


class Process(NamedTuple):
    """A running process. Its id may be used again when it has ended, but not with the same start."""

    number: int
    parent: int
    start: int


def end(folder: Path, started: Iterable[Process] = ()) -> list[int]:
    """Kill every process that was started in ``folder`` or with a variable that names it, and those in ``started``.

    Folder and variables are inherited, and each worker has its own folder. A process may start another one before it
    ends, so this repeats until there is none. Returns the processes that have not ended after TIMEOUT.
    """
    for process in started:
        now = find(process.number)
        if now is not None and now.start == process.start:
            kill(process.number)
    deadline = time.monotonic() + TIMEOUT
    while (strays := list(processes(folder))) and time.monotonic() < deadline:
        for number in strays:
            kill(number)
        time.sleep(PAUSE)
    return strays


def end_below(number: int) -> None:
    """Kill all processes below one that is still there. It is stopped for good: it starts no more, and adopts orphans.

    Else a process that is killed could leave one that it has started meanwhile.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(number, signal.SIGSTOP)
    deadline = time.monotonic() + TIMEOUT
    while (found := descendants(number)) and time.monotonic() < deadline:
        for process in found:
            kill(process.number)
        time.sleep(PAUSE)


def kill(number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(number, signal.SIGKILL)


def processes(folder: Path) -> Iterator[int]:
    """Yield the running processes of this user that belong to the folder, except this one."""
    for process in running():
        with contextlib.suppress(OSError):  # it has ended, or it belongs to another user
            if process.number != os.getpid() and belongs(Path("/proc", str(process.number)), folder):
                yield process.number


def descendants(number: int) -> list[Process]:
    """Return the running processes that a process started, and those that these started."""
    children: dict[int, list[Process]] = {}
    for process in running():
        children.setdefault(process.parent, []).append(process)
    found = children.get(number, [])
    for process in found:  # it grows
        found += children.pop(process.number, [])
    return found


def running() -> Iterator[Process]:
    for path in Path("/proc").glob("[0-9]*"):
        process = find(int(path.name))
        if process is not None:
            yield process


def find(number: int) -> Process | None:
    """Return a process; None if it has ended. A zombie has ended, and a process that ends cannot be killed again."""
    try:
        text = Path(f"/proc/{number}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # proc(5), from the state on
    return None if fields[0] in "ZX" else Process(number, int(fields[1]), int(fields[19]))


def belongs(path: Path, folder: Path) -> bool:
    name = str(folder).encode()
    return name in (path / "environ").read_bytes() or str(folder) == str((path / "cwd").readlink())
