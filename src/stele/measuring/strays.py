"""End the processes that a worker left behind: in another session, they are not in its process group. Linux only."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path


def end(folder: Path) -> None:
    """Kill every process that was started in ``folder`` or with a variable that names it.

    Both are inherited, and each worker has its own folder. A process may start another one before it ends, so this
    repeats until there is none.
    """
    while strays := list(processes(folder)):
        for number in strays:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)


def processes(folder: Path) -> Iterator[int]:
    """Yield the running processes of this user that belong to the folder, except this one."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or it belongs to another user
            if int(path.name) != os.getpid() and is_running(path) and belongs(path, folder):
                yield int(path.name)


def is_running(path: Path) -> bool:
    """Return whether a process runs: a zombie has ended, and a process that ends cannot be killed again."""
    return (path / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"


def belongs(path: Path, folder: Path) -> bool:
    name = str(folder).encode()
    return name in (path / "environ").read_bytes() or str(folder) == str((path / "cwd").readlink())
