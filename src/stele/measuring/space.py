"""Whether a worker failed because a disk is full, which says nothing about its framework."""

import shutil
from collections.abc import Iterable
from pathlib import Path

LEAST = 2**20  # bytes; with less, no framework can work
MESSAGES = (
    "No space left on device",
    "Disk quota exceeded",
)  # in the language of C, as most libraries print them


def full_disk(folders: Iterable[Path], lines: Iterable[str]) -> str | None:
    """Return which disk is full, or None. It may be another disk than that of the folders: a line can say so."""
    for folder in folders:
        if is_full(folder):
            return f"the disk of {folder}"
    for line in lines:
        if any(message in line for message in MESSAGES):
            return f"a disk that it uses ({line.strip()})"
    return None


def is_full(path: Path) -> bool:
    """Return whether the disk of a path has too little space."""
    try:
        return shutil.disk_usage(path).free < LEAST
    except OSError:  # the folder of a worker that has ended
        return False
