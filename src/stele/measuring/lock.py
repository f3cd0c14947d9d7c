"""One measurement at a time on a machine: a lock file in the user's cache.

Suites, gates, bisections and nightly runs hold the lock while they measure, because two measurements at once slow
each other down without any message. Cells of a fleet share the lock: they keep apart by other locks
(``stele.fleet.slots``). The operating system releases the lock of a process that ends in any way.
"""

import contextlib
import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TypedDict

from stele import schema
from stele.data import cache
from stele.errors import SteleError


def here() -> str:
    """Return a name of this machine for all its containers. Machines may share the cache."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8")[:8]
    except OSError:
        return socket.gethostname()


FILE = f"measuring-{here()}.lock"
POLL = 0.5  # seconds between two attempts
REMINDER = 60.0  # seconds between two messages


class Holder(TypedDict):
    """The content of the file: what is measured, the process, and since when (seconds)."""

    what: str
    pid: int
    since: float


held = 0  # how often this process holds the lock: a gate that starts a measurement does not wait for itself


@contextlib.contextmanager
def machine(what: str, *, wait: bool, say: Callable[[str], object], shared: bool = False) -> Iterator[None]:
    """Hold the lock of this machine, or ``shared`` share it; ``what`` names the measurement for others that wait.

    While another process holds it, ``say`` is told what it is and for how long. Raises SteleError in place of waiting
    if not ``wait``.
    """
    global held
    with contextlib.ExitStack() as stack:
        if held == 0:
            file = stack.enter_context(opened())
            acquire(file, wait=wait, say=say, shared=shared)
            describe(file, what)
        held += 1
        try:
            yield
        finally:
            held -= 1


def opened() -> IO[str]:
    path = cache.folder() / FILE
    try:
        cache.create()
        return path.open("a+", encoding="utf-8")
    except OSError as error:
        raise SteleError(
            f"The cache folder {path.parent} cannot be used: {error.strerror}. "
            "Set STELE_CACHE to a folder that you can write to."
        ) from None


def acquire(file: IO[str], *, wait: bool, say: Callable[[str], object], shared: bool = False) -> None:
    began = reminded = time.monotonic()
    while not locked(file, shared=shared):
        now = time.monotonic()
        if not wait:
            raise SteleError(f"Another measurement runs on this machine: {holder(file)}. Wait for its end.")
        if reminded == began or now - reminded >= REMINDER:
            waited = f" ({(now - began) / 60:.0f} min so far)" if now - began >= REMINDER else ""
            say(f"stele: waiting{waited} for another measurement on this machine: {holder(file)}")
            reminded = now
        time.sleep(POLL)


def locked(file: IO[str], *, shared: bool = False) -> bool:
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def describe(file: IO[str], what: str) -> None:
    """Write who holds the lock into it."""
    file.seek(0)
    file.truncate()
    file.write(json.dumps(schema.wrap({"what": what, "pid": os.getpid(), "since": time.time()})))
    file.flush()


def holder(file: IO[str]) -> str:
    """Return ``stele gate A B (process 123, started 12 min ago)``, or that it is unknown."""
    file.seek(0)
    try:
        facts = schema.parse(file.read())
        schema.check(facts, Holder, "it")
        minutes = (time.time() - facts["since"]) / 60
        return f"{facts['what']} (process {facts['pid']}, started {minutes:.0f} min ago)"
    except ValueError:
        return "an unknown process"
