"""What the user's environment says about Stele itself: every variable whose name starts with STELE_, in one place.

A process reads the variables once, where it starts: ``stele.__main__`` and the plugin hold them until they end.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stele.files import absolute


@dataclass(frozen=True)
class Config:
    """Folders are absolute. None, and False, if a variable is not set or empty."""

    cache: Path  # STELE_CACHE, or the cache folder for stele of this user and system
    data: Path | None = None  # STELE_DATA: a folder with published data
    offline: bool = False  # STELE_OFFLINE: no data is downloaded
    environments: Path | None = None  # STELE_ENVIRONMENTS: a folder with descriptions of the user
    lock_folder: Path | None = None  # STELE_LOCK_FOLDER: that of the locks of all users
    index: str | None = None  # STELE_INDEX: a package index, or a folder of wheels


_of_process: Config | None = None


def current() -> Config:
    """Return the configuration that this process holds.

    A program that only calls functions of Stele holds none: for it the variables are read now.
    """
    return _of_process or read()


@contextlib.contextmanager
def hold() -> Iterator[None]:
    """Read the variables, and hold the configuration until the end of the block."""
    global _of_process
    before, _of_process = _of_process, read()
    try:
        yield
    finally:
        _of_process = before


def read(variables: Mapping[str, str] = os.environ) -> Config:
    def folder(name: str) -> Path | None:
        return absolute(variables[name]) if variables.get(name) else None

    return Config(
        cache=folder("STELE_CACHE") or user_cache(),
        data=folder("STELE_DATA"),
        offline=variables.get("STELE_OFFLINE", "0") not in ("", "0"),
        environments=folder("STELE_ENVIRONMENTS"),
        lock_folder=folder("STELE_LOCK_FOLDER"),
        index=variables.get("STELE_INDEX") or None,
    )


def user_cache() -> Path:
    import platformdirs  # imported here because few commands need it

    return platformdirs.user_cache_path("stele", appauthor=False)
