"""End what Ray started on this machine, however the command ends: Ray's own agents stay for minutes if it is killed.

    python -m stele.fleet.guard FOLDER PID

waits until its standard input ends, which is when the command has ended in any way. Then it kills the processes that
use this folder or have it in their environment, but not the command itself (PID), and deletes the folder.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil

VARIABLE = "STELE_FLEET"
PATIENCE = 5.0  # seconds in which Ray's processes may end by themselves


@contextlib.contextmanager
def guarded(folder: str) -> Iterator[None]:
    """Mark what is started in this block with the folder, and end it after the block."""
    before = os.environ.get(VARIABLE)
    command = [sys.executable, "-m", "stele.fleet.guard", folder, str(os.getpid())]
    # a session of its own, so that Ctrl-C does not end it
    guard = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    os.environ[VARIABLE] = folder
    try:
        yield
    finally:
        os.environ.pop(VARIABLE)
        if before is not None:
            os.environ[VARIABLE] = before
        guard.communicate()


def marked(folder: str) -> list[psutil.Process]:
    """Return the processes that use this folder, or have it in their environment.

    Ray writes titles of processes over their environment, so that of its own processes is not complete.
    """
    return [process for process in psutil.process_iter() if belongs(process, folder)]


def belongs(process: psutil.Process, folder: str) -> bool:
    with contextlib.suppress(psutil.Error):
        if process.environ().get(VARIABLE) == folder:
            return True
    with contextlib.suppress(psutil.Error):
        return any(file.path.startswith(folder) for file in process.open_files())
    return False


def end(folder: str, command: int) -> None:
    """Kill the processes that are left after some seconds."""
    until = time.monotonic() + PATIENCE
    while processes := [process for process in marked(folder) if process.pid != command]:
        if time.monotonic() > until:
            for process in processes:
                with contextlib.suppress(psutil.Error):
                    process.kill()
        time.sleep(0.1)


def main(folder: str, command: int) -> None:
    sys.stdin.read()
    end(folder, command)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
