"""One measurement at a time on a machine: a lock file in a folder that all users share, and one in the user's cache.

The folder does not depend on the user's variables. Containers have folders of their own, but may share a cache.
Suites, gates, bisections and nightly runs hold the lock while they measure, because two measurements at once slow each
other down without any message. Cells of a fleet share the lock: they keep apart by other locks
(``stele.fleet.slots``). The operating system releases the lock of a process that ends in any way.
"""

import contextlib
import fcntl
import functools
import os
import shlex
import socket
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from stele import config, schema
from stele.data import cache
from stele.errors import SteleError
from stele.schema import about
from stele.text import printable


def here() -> str:
    """Return a name of this machine for all its containers. Machines may share the cache."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8")[:8]
    except OSError:
        return socket.gethostname()


@functools.cache
def file_name() -> str:
    """Return the name of the lock of this machine."""
    return f"measuring-{here()}.lock"


VARIABLE = "STELE_LOCK_FOLDER"  # names another folder than these
FOLDERS = (Path("/dev/shm"), Path("/tmp"))  # predictable, which is the point: see open_file
POLL = 0.5  # seconds between two attempts
REMINDER = 60.0  # seconds between two messages
LONGEST = 2**16  # bytes of a description that are read


class Holder(msgspec.Struct, frozen=True):
    """`measuring-<machine>.lock` in `/dev/shm`, else in `/tmp`, or in the folder that `STELE_LOCK_FOLDER` names, and in
    the user's cache.

    The lock is that of the operating system (`flock`). The content only describes the holder. It stays in the file
    after the lock is released.
    """

    what: Annotated[str, about("the measurement, such as `stele gate A B`")]
    pid: Annotated[int, about("process that holds the lock")]
    since: Annotated[float, about("when it got the lock", "s since 1970")]


depth = 0  # how often this process holds the lock: a gate that starts a measurement does not wait for itself


@contextlib.contextmanager
def machine(what: str, *, wait: bool, say: Callable[[str], object], shared: bool = False) -> Iterator[None]:
    """Hold the lock of this machine, or ``shared`` share it; ``what`` names the measurement for others that wait.

    While another process holds it, ``say`` is told what it is and for how long. Raises SteleError in place of waiting
    if not ``wait``.
    """
    global depth
    with contextlib.ExitStack() as stack:
        if depth == 0:
            lock = stack.enter_context(opened(file_name()))
            acquire(lock, wait=wait, say=say, shared=shared)
            describe(lock, what)
        depth += 1
        try:
            yield
        finally:
            depth -= 1


Lock = list[int]  # the descriptor of the file in each place


@contextlib.contextmanager
def opened(name: str) -> Iterator[Lock]:
    """Open the lock of this name in each place. Every process takes them in the same order."""
    with contextlib.ExitStack() as stack:
        lock = []
        for folder in folders():
            lock.append(open_file(folder / name))
            stack.callback(os.close, lock[-1])
        yield lock


def folders() -> list[Path]:
    """Return the folder that all users of this machine share, if there is one, and the user's cache."""
    named = config.current().lock_folder
    shared = [named] if named else [place for place in FOLDERS if os.access(place, os.W_OK | os.X_OK)]
    try:
        places = [*shared[:1], cache.create()]
    except OSError as error:
        raise SteleError(
            f"The cache folder {cache.folder()} cannot be used: {error.strerror}. "
            "Set STELE_CACHE to a folder that you can write to."
        ) from None
    return list({place.resolve(): place for place in places}.values())  # one file twice would wait for itself


def open_file(path: Path) -> int:
    """Open a lock file, which other users can lock, too. Raises SteleError if it cannot be opened.

    Other users can make a link or a pipe with this name, or another name of a file. Nothing is written there.
    """
    try:
        descriptor = open_or_create(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        facts = os.fstat(descriptor)
        if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1:
            return descriptor
        os.close(descriptor)
        reason = "it is not a regular file with one name"
    except FileNotFoundError:
        raise SteleError(
            f"The folder {path.parent} of the locks of all users ({VARIABLE}) does not exist. Create it: mkdir -p "
            f"{shlex.quote(str(path.parent))}"
        ) from None
    except OSError as error:
        reason = error.strerror or str(error)
    raise SteleError(
        f"The lock {path} cannot be opened: {reason}. Remove it, or ask its owner to remove it. "
        f"{VARIABLE} names another folder for the locks of all users."
    )


def open_or_create(path: Path, flags: int) -> int:
    """Open a file, or create it. One that may only be read can be locked, too."""
    with contextlib.suppress(FileNotFoundError):
        try:
            return os.open(path, flags)
        except PermissionError:
            return os.open(path, flags & ~os.O_RDWR)
    try:
        # with O_CREAT alone, Linux refuses files of other users in a folder such as /tmp
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:  # another process was faster
        return os.open(path, flags)
    os.fchmod(descriptor, 0o666)  # whatever the umask
    return descriptor


def acquire(lock: Lock, *, wait: bool, say: Callable[[str], object], shared: bool = False) -> None:
    began = reminded = time.monotonic()
    while (busy := find_taken(lock, shared=shared)) is not None:
        now = time.monotonic()
        if not wait:
            raise SteleError(f"Another measurement runs on this machine: {holder(busy)}. Wait for its end.")
        if reminded == began or now - reminded >= REMINDER:
            waited = f" ({(now - began) / 60:.0f} min so far)" if now - began >= REMINDER else ""
            say(f"stele: waiting{waited} for another measurement on this machine: {holder(busy)}")
            reminded = now
        time.sleep(POLL)


def find_taken(lock: Lock, *, shared: bool = False) -> int | None:
    """Lock all files and return None; or lock none and return the first one that another process holds."""
    for number, descriptor in enumerate(lock):
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            for earlier in lock[:number]:
                fcntl.flock(earlier, fcntl.LOCK_UN)
            return descriptor
    return None


def describe(lock: Lock, what: str) -> None:
    """Write who holds the lock into its files, as far as they can be written."""
    text = schema.document(Holder(what, os.getpid(), time.time()))
    for descriptor in lock:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, text.encode(), 0)


def holder(descriptor: int) -> str:
    """Return ``stele gate A B (process 123, started 12 min ago)``, or that it is unknown."""
    try:
        text = os.pread(descriptor, LONGEST, 0).decode(errors="replace")
        facts = schema.of_document(schema.parse(text), Holder)
    except ValueError:
        return "an unknown process"
    minutes = (time.time() - facts.since) / 60
    return f"{printable(facts.what, keep='')} (process {facts.pid}, started {minutes:.0f} min ago)"
