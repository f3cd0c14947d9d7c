"""The user's cache: arrays under the fingerprint of their content, and notes of their sources.

A file appears under its name only when it is whole, so two processes may write the same at once.
    downloads/imdb.npz                  as published
    data/imdb-<stamp>.json              the note: which files gave which arrays
    data/imdb-<fingerprint>/train_x.npy
"""

import hashlib
import json
import os
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from stele.data.source import Arrays
from stele.files import write

LAYOUT = 1  # raise it when the same sources are to give other arrays


def folder() -> Path:
    """STELE_CACHE, else this user's cache folder for stele as the system has it."""
    if os.environ.get("STELE_CACHE"):
        return Path(os.environ["STELE_CACHE"]).expanduser()
    import platformdirs

    return platformdirs.user_cache_path("stele", appauthor=False)


def stamp(name: str, files: list[Path]) -> str:
    """A key that changes when a file does, by its size and time, without reading it."""
    facts = [(str(file.absolute()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    digest = hashlib.sha256(json.dumps([LAYOUT, name, facts]).encode()).hexdigest()
    return f"{name}-{digest[:16]}"


def fingerprint(arrays: Arrays) -> str:
    """The first 16 hexadecimal digits of SHA-256 over the arrays' bytes, in order."""
    digest = hashlib.sha256()
    for array in arrays.values():
        digest.update(numpy.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]


class Known(NamedTuple):
    """What the cache holds for a source."""

    origin: str
    fingerprint: str
    files: dict[str, Path]


def keep(cache: Path, key: str, origin: str, arrays: Arrays, *, archive: str | None = None) -> Known:
    """Write each array as .npy, or all as one .npz ``archive``; then note that ``key`` gave it."""
    digest = fingerprint(arrays)
    place = Path("data") / f"{key.split('-')[0]}-{digest}"
    if archive:
        files = {archive: place / f"{archive}.npz"}
        named: dict[str, Any] = arrays
        write(cache / files[archive], lambda file: numpy.savez(file, **named))
    else:
        files = {name: place / f"{name}.npy" for name in arrays}
        for name, path in files.items():
            write(cache / path, partial(numpy.save, arr=arrays[name], allow_pickle=False))
    sizes = {name: [str(path), (cache / path).stat().st_size] for name, path in files.items()}
    note = json.dumps({"origin": origin, "fingerprint": digest, "files": sizes})
    write(cache / "data" / f"{key}.json", lambda file: file.write(note.encode()))
    return Known(origin, digest, {name: cache / path for name, path in files.items()})


def recall(cache: Path, key: str) -> Known | None:
    """What ``keep`` kept under ``key``; None if the note or a file is gone or of another size."""
    try:
        note = json.loads((cache / "data" / f"{key}.json").read_text())
        files = {name: cache / path for name, (path, _) in note["files"].items()}
        whole = all(files[name].stat().st_size == size for name, (_, size) in note["files"].items())
        return Known(note["origin"], note["fingerprint"], files) if whole else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
