"""End the processes that a worker left behind: in another session, they are not in its process group."""

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

# seconds in which a killed process ends, unless it waits for a disk or a device
TIMEOUT = 5.0
# seconds between two looks
PAUSE = 0.01


def end(folder: Path, started: Iterable[psutil.Process] = ()) -> list[int]:
    """Kill every process that was started in ``folder`` or with a variable that names it, and those in ``started``.

    Folder and variables are inherited, and each worker has its own folder. A process may start another one before it
    ends, so this repeats until there is none. Returns the ids of the processes that have not ended after TIMEOUT.
    """
    for process in started:
        kill(process)
    deadline = time.monotonic() + TIMEOUT
    while (strays := processes(folder)) and time.monotonic() < deadline:
        for process in strays:
            kill(process)
        time.sleep(PAUSE)
    return [process.pid for process in strays]


def end_below(number: int) -> None:
    """Kill all processes below one that is still there. It is stopped for good: it starts no more, and adopts orphans.

    Else a process that is killed could leave one that it has started meanwhile.
    """
    with contextlib.suppress(psutil.Error):
        psutil.Process(number).suspend()
    deadline = time.monotonic() + TIMEOUT
    while (running := descendants(number)) and time.monotonic() < deadline:
        for process in running:
            kill(process)
        time.sleep(PAUSE)


def kill(process: psutil.Process) -> None:
    # it has ended, and perhaps another process has its id
    with contextlib.suppress(psutil.Error):
        process.kill()


def processes(folder: Path) -> list[psutil.Process]:
    """Return the running processes of this user that belong to the folder, except this one."""
    return [process for process in psutil.process_iter() if process.pid != os.getpid() and belongs(process, folder)]


def belongs(process: psutil.Process, folder: Path) -> bool:
    """Return whether a running process has the folder in its variables, or works in it."""
    with contextlib.suppress(psutil.Error):
        named = any(str(folder) in value for value in process.environ().values())
        return runs(process) and (named or process.cwd() == str(folder))
    return False


def runs(process: psutil.Process) -> bool:
    """Return whether a process has not ended. Of one that has, its parent may not know it yet."""
    with contextlib.suppress(psutil.Error):
        return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    return False


def descendants(number: int) -> list[psutil.Process]:
    """Return the running processes that a process started, and those that these started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [process for process in psutil.Process(number).children(recursive=True) if runs(process)]
    return []
