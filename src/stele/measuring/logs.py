"""The log of a worker, which may be huge or hostile: its size, its end, and how it is shortened."""

import contextlib
import os
from pathlib import Path

from stele.text import printable

LARGEST = 2**30  # bytes; a thread that prints forever must not fill the disk
TAIL = 20  # lines that an error shows
TAIL_BYTES = 64 * 2**10  # the most that is read


def size(log: Path) -> int:
    """Return the size of the log, in bytes; 0 if there is none."""
    try:
        return log.stat().st_size
    except OSError:
        return 0


def last_lines(log: Path) -> list[str]:
    """Return the end of the log, without the characters that control a terminal."""
    if not log.exists():
        return []
    return printable(read_end(log).decode(errors="replace")).splitlines()[-TAIL:]


def shorten(log: Path) -> None:
    """Keep the end of the log, and give the rest of the disk back."""
    with contextlib.suppress(OSError):
        end = read_end(log)
        with log.open("r+b") as file:
            file.write(end)
            file.truncate()


def read_end(log: Path) -> bytes:
    """Return at most the last TAIL_BYTES bytes of the log. Raises OSError."""
    with log.open("rb") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - TAIL_BYTES, 0))
        return file.read()
