"""Write files atomically, read them up to a size, and find out whether a name that a user typed is a file."""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from stele.errors import SteleError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FULL = (errno.ENOSPC, errno.EDQUOT)
READ_ONLY = (errno.EROFS, errno.EACCES)
# the file itself is mounted, as into a container, or it belongs to another user in a folder such as /tmp
NOT_REPLACED = (errno.EBUSY, errno.EPERM, errno.EACCES)
LARGEST = 2**30  # bytes of a file that a program wrote, such as a record: that of a long gate has some MiB
LARGEST_TEXT = 64 * 2**20  # bytes of a file that people write, such as a lock file or a recipe
MOST_LINKS = 40  # as in Linux
WAIT_FOR_READER = 10.0  # seconds


class WriteError(SteleError, OSError):
    """A file could not be written. The text names it."""


class ReadError(SteleError, OSError):
    """A file is not read, because it is not a regular file or too large. The text names it."""


def read_bytes(path: Path, largest: int = LARGEST) -> bytes:
    """Return the content of a regular file. Raises ReadError for what may have no end, and OSError."""
    check_regular(path, path.stat())  # before it is opened: a device may act on that
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123, it may be a FIFO by now
        status = os.fstat(file.fileno())
        check_regular(path, status)
        content = b"" if status.st_size > largest else file.read(largest + 1)
    size = max(status.st_size, len(content))
    if size > largest:
        raise ReadError(f"{path} has {amount(size)}; the largest file of its kind that is read has {amount(largest)}.")
    return content


def read_text(path: Path) -> str:
    """Return the text of a regular file that people write, in UTF-8. Raises SteleError if it cannot be read."""
    try:
        return read_bytes(path, LARGEST_TEXT).decode()
    except UnicodeDecodeError as error:
        raise SteleError(f"{path} is not text in UTF-8: {error}. Save it in UTF-8.") from None
    except OSError as error:
        raise SteleError(describe(error)) from None


def parse_toml(text: str) -> dict[str, Any]:
    """Return the value of a TOML text. Raises ValueError if it is not TOML."""
    return tomllib.loads(text)


def check_regular(path: Path, status: os.stat_result) -> None:
    """Raise ReadError unless a status is that of a regular file."""
    if stat.S_ISDIR(status.st_mode):
        raise ReadError(f"{path} cannot be read: it is a folder. Name a file.")
    if not stat.S_ISREG(status.st_mode):
        raise ReadError(f"{path} is not a regular file. Name a file.")


def amount(size: int) -> str:
    """Return a number of bytes as text."""
    return f"{size / 2**30:.3g} GiB" if size >= 2**30 else f"{size / 2**20:.3g} MiB"


def write(path: Path, save: Callable[[IO[bytes]], object]) -> None:
    """Call ``save`` with a temporary file in the same folder, then rename it to ``path``.

    Until then, other processes read the old file. An interruption leaves only the old file.
    """
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, save)


def replace(path: Path, save: Callable[[IO[bytes]], object]) -> None:
    """Write a file in a folder that exists, as ``write`` does. Raises OSError."""
    temporary = path.with_name(f"{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as file:
            save(file)
        with contextlib.suppress(OSError):  # it is new
            shutil.copymode(path, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_output(path: Path, save: Callable[[IO[bytes]], object]) -> None:
    """Write a file that a user named.

    Of a link, the file that it leads to is written. A regular file is replaced when the new one is complete. What
    cannot be replaced is written directly: a device, a FIFO, a descriptor such as /dev/stdout, a mounted file.
    """
    with explained(path):
        if is_replaceable(path):
            try:
                replace(Path(os.path.realpath(path)), save)
                return
            except OSError as error:
                if error.errno not in NOT_REPLACED:
                    raise
        with open_directly(path) as file:
            save(file)


def is_replaceable(path: Path) -> bool:
    """Return whether writing to a path makes or replaces a regular file. Raises OSError for an impossible name."""
    if descriptor_of(path) is not None:
        return False
    status = status_of(path)
    return status is None or (stat.S_ISREG(status.st_mode) and os.access(Path(os.path.realpath(path)).parent, os.W_OK))


def open_directly(path: Path) -> IO[bytes]:
    """Open what cannot be replaced. The reader of a FIFO may be about to start, so this waits for it some seconds."""
    number = descriptor_of(path)
    if number is not None:
        if sys.stdout is not None:
            sys.stdout.flush()  # it may be the same descriptor
        return open(os.dup(number), "wb")  # noqa: PTH123, a descriptor is no path
    end = time.monotonic() + WAIT_FOR_READER
    while True:
        try:
            opened = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > end:
                raise OSError(error.errno, "no program reads it") from None
            time.sleep(0.05)
        else:
            os.set_blocking(opened, True)
            return open(opened, "wb")  # noqa: PTH123


def descriptor_of(path: Path) -> int | None:
    """Return the number of a descriptor of this process: 1 of /dev/stdout and of /dev/fd/1. None of other paths."""
    folders = {os.path.realpath("/dev/fd"), f"/proc/{os.getpid()}/fd"}
    for _ in range(MOST_LINKS):
        folder = os.path.realpath(path.parent)
        if folder in folders and path.name.isdecimal():
            return int(path.name)
        try:
            path = Path(folder, os.readlink(path))  # noqa: PTH115, Path.readlink would read the name once more
        except OSError:  # it is no link
            return None
    return None


def status_of(path: Path) -> os.stat_result | None:
    """Return the status of what a path leads to; None if that does not exist. Raises OSError for other problems."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def check_writable(path: Path) -> None:
    """Raise WriteError if a file that a user named cannot be written. Call it before a long measurement."""
    with explained(path):
        reason = why_unwritable(path)
    if reason is not None:
        raise WriteError(f"{path} cannot be written: {reason}")


def check_writable_folder(path: Path) -> None:
    """Raise WriteError if no files can be written into a folder that a user named. It may not exist yet."""
    with explained(path):
        status = status_of(path)
        if status is None:
            reason = why_no_file_can_be_made(Path(os.path.realpath(path)).parent)
        elif not stat.S_ISDIR(status.st_mode):
            reason = "it is a file. Name a folder."
        else:
            reason = why_no_file_can_be_made(path)
    if reason is not None:
        raise WriteError(f"{path} cannot be written: {reason}")


def why_unwritable(path: Path) -> str | None:
    number = descriptor_of(path)
    if number is not None:
        return why_closed(number)
    status = status_of(path)
    if status is None:
        return why_no_file_can_be_made(Path(os.path.realpath(path)).parent)
    if stat.S_ISDIR(status.st_mode):
        return "it is a folder. Name a file."
    if stat.S_ISBLK(status.st_mode):
        return "it is a disk. Name a file."
    if stat.S_ISSOCK(status.st_mode):
        return "it is a socket. Name a file."
    return None if os.access(path, os.W_OK) else "you do not have permission to write to it."


def why_closed(number: int) -> str | None:
    """Return why a descriptor of this process cannot be written."""
    try:
        mode = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
    except OSError:
        return f"descriptor {number} is not open."
    return f"descriptor {number} is open for reading only." if mode == os.O_RDONLY else None


def why_no_file_can_be_made(folder: Path) -> str | None:
    if not is_folder(folder):
        return f"there is no folder {folder}. Create it first."
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"you do not have permission to write to the folder {folder}."
    return None


def same(path: Path, other: Path) -> bool:
    """Return whether two paths lead to the same file, which may not exist yet. A hard link is the same file."""
    try:
        return path.samefile(other)
    except OSError:
        return os.path.realpath(path) == os.path.realpath(other)


def expand(text: str) -> Path:
    """Return the path with ``~`` replaced; a path of an unknown user stays as it is, and is then no file."""
    return Path(os.path.expanduser(text))  # noqa: PTH111, Path.expanduser raises RuntimeError


def absolute(text: str | Path) -> Path:
    """Return a path that a user typed as an absolute path. Links stay: a virtual environment's interpreter is one."""
    return expand(str(text)).absolute()


def is_file(path: Path) -> bool:
    """Return whether the path is a file; False also for a name that no file can have, such as one that is too long."""
    return os.path.isfile(path)  # noqa: PTH113, Path.is_file raises OSError for such a name


def exists(path: Path) -> bool:
    """Return whether there is anything with this name; False also for a name that nothing can have."""
    return os.path.exists(path)  # noqa: PTH110, as above


def is_folder(path: Path) -> bool:
    """Return whether the path is a folder; False also for a name that no folder can have."""
    return os.path.isdir(path)  # noqa: PTH112, as above


def is_link(path: Path) -> bool:
    """Return whether the path is a symbolic link; False also for a name that no file can have."""
    return os.path.islink(path)  # noqa: PTH114, as above


def without_dots(path: Path) -> Path:
    """Return the absolute path without ``..``. Links stay."""
    return Path(os.path.abspath(path))  # noqa: PTH100, Path.resolve follows links


def describe(error: OSError) -> str:
    """Return what happened to which file, and what to do, as text."""
    if isinstance(error, SteleError):
        return str(error)
    if isinstance(error, BrokenPipeError):
        return "the program that reads the output has ended, so the output is incomplete. Redirect it to a file."
    what = f"{error.filename or 'a file'}: {error.strerror or error}"
    removed = removed_folder() if error.errno == errno.ENOENT else None
    if removed is not None:
        return f"{what}. {describe_removed(removed)}"
    if error.errno in FULL:
        return (
            f"{what}. What was measured until now is kept. Free some space, then run the command again; "
            "stele gate continues with --resume."
        )
    if error.errno in READ_ONLY:
        return f"{what}. Run the command in a folder that you can write to."
    return what


def removed_folder() -> str | None:
    """Return the folder in which Stele works, or that of temporary files, if it was deleted since the start."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return current_folder()
    folder = tempfile.gettempdir()
    return None if is_folder(Path(folder)) else folder


def current_folder() -> str:
    """Return the name that the deleted folder had in which Stele works, as far as the system knows it."""
    try:
        return str(Path("/proc/self/cwd").readlink()).removesuffix(" (deleted)")
    except OSError:
        return "in which Stele works"


def describe_removed(folder: str) -> str:
    return f"The folder {folder} was deleted while Stele used it. Create it again, then run the command again."


def describe_encoding(error: UnicodeEncodeError) -> str:
    """Return which name the locale cannot express, and what to do, as text."""
    return (
        f"the encoding of this locale, {error.encoding}, cannot express {error.object!r}. "
        "Set a locale with UTF-8, such as LC_ALL=C.UTF-8, or set PYTHONUTF8=1."
    )


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise an error of the operating system as a WriteError, because most of them do not name the file."""
    try:
        yield
    except OSError as error:
        text = describe(OSError(error.errno, error.strerror or str(error), str(path)))
        if error.errno == errno.ENOENT and removed_folder() is None and not is_folder(path.parent):
            text += f". {describe_removed(str(path.parent))}"
        raise WriteError(text) from None


def append_text(path: Path, text: str) -> None:
    """Append text to a file, in UTF-8."""
    with explained(path), path.open("a", encoding="utf-8") as file:
        file.write(text)


def write_text(path: Path, text: str) -> None:
    """Write text atomically, in UTF-8. A name that the locale could not decode has its bytes again."""
    write(path, lambda file: file.write(text.encode(errors="surrogateescape")))


def write_output_text(path: Path, text: str) -> None:
    """Write text to a file that a user named, as ``write_output`` does."""
    write_output(path, lambda file: file.write(text.encode(errors="surrogateescape")))
