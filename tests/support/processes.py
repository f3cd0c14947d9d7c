"""Find running processes. A zombie does not run: it has ended, and only its exit status is left."""

import contextlib
import os
import time

import psutil


def alive(pid):
    """Return whether a process runs."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def in_group(group):
    """Return the ids of the running processes of a process group."""
    members = []
    for pid in psutil.pids():
        with contextlib.suppress(ProcessLookupError):
            if os.getpgid(pid) == group and alive(pid):
                members.append(pid)
    return members


def wait_until(condition, seconds=10):
    """Wait until ``condition()`` is true. Fails after ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def with_variable(name, value):
    """Return the running processes that have a variable in their environment, by id, with their command lines."""
    running = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(name) == value and alive(process.pid):
                running[process.pid] = " ".join(process.cmdline())
    return running
