"""Temporary folders. The next start of Stele deletes those of a process that was killed.

A process holds a lock on each of its folders. The operating system releases the lock when the process ends in any way.
A process id would not do: containers that share a folder have separate process ids.
"""

import contextlib
import fcntl
import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from stele import files
from stele.errors import SteleError

PREFIX = "stele-temporary-"
# bytes of TMPDIR; sockets below it, such as pymp-xxxxxxxx/listener-xxxxxxxx of multiprocessing, may have 107
LONGEST = 70


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Yield a new empty folder, and delete it at the end."""
    remove_abandoned()
    with contextlib.ExitStack() as stack:
        path: Path | None = None
        while path is None:
            path = create(stack)
        yield path


def inside(path: Path) -> Path:
    """Return a folder for temporary files of a child process, which is deleted with ``path``.

    If its name would be too long for sockets below it, the usual folder is returned.
    """
    folder = path / "tmp"
    if len(os.fsencode(folder)) > LONGEST:
        return Path(tempfile.gettempdir())
    folder.mkdir()
    return folder


def create(stack: contextlib.ExitStack) -> Path | None:
    """Return a new locked folder; None if another process deleted it before it was locked."""
    try:
        created = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
    except FileNotFoundError:
        raise SteleError(files.describe_removed(tempfile.gettempdir())) from None
    path = Path(stack.enter_context(created))
    with contextlib.suppress(OSError):  # some network file systems have no locks; nothing is deleted there
        stack.enter_context(locked(path, fcntl.LOCK_SH))
    return path if path.is_dir() else None


@contextlib.contextmanager
def locked(path: Path, kind: int) -> Iterator[None]:
    """Hold a lock on a folder. Raises OSError if it is no folder, or if it is locked and ``kind`` does not wait."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, kind)
        yield
    finally:
        os.close(descriptor)


@functools.cache  # once in each process
def remove_abandoned() -> None:
    """Delete the folders of processes that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # its process lives, or another process has deleted it
            if path.lstat().st_uid == os.geteuid():
                with locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    shutil.rmtree(path)
