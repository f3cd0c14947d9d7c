"""Find running processes."""

import time
from pathlib import Path


def alive(pid):
    """Return whether a process runs. A zombie does not: it has ended, and only its exit status is left."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def in_group(group):
    """Return the running processes of a process group, without zombies."""
    processes = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, process_group = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(process_group) == group and state != "Z":
            processes.append(stat.parent.name)
    return processes


def wait_until(condition, seconds=10):
    """Wait until ``condition()`` is true. Fails after ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def with_variable(name, value):
    """Return the running processes that have a variable in their environment, by id, with their command lines."""
    wanted, found = f"{name}={value}".encode(), {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0") and alive(folder.name):
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found
