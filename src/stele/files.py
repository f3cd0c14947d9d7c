"""Write files atomically, and find out whether a name that a user typed is a file."""

import contextlib
import errno
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from stele.errors import SteleError

FULL = (errno.ENOSPC, errno.EDQUOT)
READ_ONLY = (errno.EROFS, errno.EACCES)


class WriteError(SteleError, OSError):
    """A file could not be written. The text names it."""


def write(path: Path, save: Callable[[IO[bytes]], object]) -> None:
    """Call ``save`` with a temporary file in the same folder, then rename it to ``path``.

    Until then, other processes read the old file. An interruption leaves only the old file.
    """
    temporary = path.with_name(f"{uuid.uuid4().hex}.tmp")
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                save(file)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def expand(text: str) -> Path:
    """Return the path with ``~`` replaced; a path of an unknown user stays as it is, and is then no file."""
    return Path(os.path.expanduser(text))  # noqa: PTH111, Path.expanduser raises RuntimeError


def absolute(text: str | Path) -> Path:
    """Return a path that a user typed as an absolute path. Links stay: a virtual environment's interpreter is one."""
    return expand(str(text)).absolute()


def is_file(path: Path) -> bool:
    """Return whether the path is a file; False also for a name that no file can have, such as one that is too long."""
    return os.path.isfile(path)  # noqa: PTH113, Path.is_file raises OSError for such a name


def is_folder(path: Path) -> bool:
    """Return whether the path is a folder; False also for a name that no folder can have."""
    return os.path.isdir(path)  # noqa: PTH112, as above


def describe(error: OSError) -> str:
    """Return what happened to which file, and what to do, as text."""
    if isinstance(error, BrokenPipeError):
        return (
            "the program that reads the output has ended, so the output is incomplete. Redirect it to a file."
        )
    what = f"{error.filename or 'a file'}: {error.strerror or error}"
    if error.errno in FULL:
        return (
            f"{what}. What was measured until now is kept. Free some space, then run the command again; "
            "stele gate continues with --resume."
        )
    if error.errno in READ_ONLY:
        return f"{what}. Run the command in a folder that you can write to."
    return what


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
        raise WriteError(describe(OSError(error.errno, error.strerror or str(error), str(path)))) from None


def append_text(path: Path, text: str) -> None:
    """Append text to a file, in UTF-8."""
    with explained(path), path.open("a", encoding="utf-8") as file:
        file.write(text)


def write_text(path: Path, text: str) -> None:
    """Write text atomically, in UTF-8. A name that the locale could not decode has its bytes again."""
    write(path, lambda file: file.write(text.encode(errors="surrogateescape")))
