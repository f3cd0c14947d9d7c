"""The user's cache: arrays, named after the fingerprint of their content, and an index of their sources.

Files are written atomically, so two processes may write the same file at the same time.
    downloads/imdb.npz                  the published file
    data/imdb-<key>.json                the index entry: the arrays that were read from certain files
    data/imdb-<fingerprint>/train_x.npy
"""

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from stele import config, schema
from stele.data.source import Arrays
from stele.files import write

LAYOUT = 1  # increase it if the same sources should result in different arrays


def folder() -> Path:
    """Return the user's cache folder."""
    return config.current().cache


def create(path: Path | None = None) -> Path:
    """Create the cache folder unless it exists, and return it.

    Only this user can enter a new one: programs in it are started.
    """
    path = path or folder()
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
    return path


def source_key(name: str, files: list[Path]) -> str:
    """Return a key that changes if the path, size or time of a file changes. The files are not read."""
    facts = [(str(file.absolute()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    digest = hashlib.sha256(json.dumps([LAYOUT, name, facts]).encode()).hexdigest()
    return f"{name}-{digest[:16]}"


def fingerprint(arrays: Arrays) -> str:
    """Return the first 16 hexadecimal digits of SHA-256 over the bytes of the arrays, in order."""
    digest = hashlib.sha256()
    for array in arrays.values():
        digest.update(numpy.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]


class CacheEntry(NamedTuple):
    """The arrays in the cache that were read from a source."""

    origin: str
    fingerprint: str
    files: dict[str, Path]


def store(cache: Path, key: str, origin: str, arrays: Arrays, *, archive: str | None = None) -> CacheEntry:
    """Write each array as .npy, or all as one .npz ``archive``; then write the index entry of ``key``."""
    digest = fingerprint(arrays)
    target = Path("data") / f"{key.split('-')[0]}-{digest}"
    if archive:
        files = {archive: target / f"{archive}.npz"}
        named: dict[str, Any] = arrays
        write(cache / files[archive], lambda file: numpy.savez(file, **named))
    else:
        files = {name: target / f"{name}.npy" for name in arrays}
        for name, path in files.items():
            write(cache / path, partial(numpy.save, arr=arrays[name], allow_pickle=False))
    sizes = {name: [str(path), (cache / path).stat().st_size] for name, path in files.items()}
    content = json.dumps({"origin": origin, "fingerprint": digest, "files": sizes})
    write(cache / "data" / f"{key}.json", lambda file: file.write(content.encode()))
    return CacheEntry(origin, digest, {name: cache / path for name, path in files.items()})


def look_up(cache: Path, key: str) -> CacheEntry | None:
    """Return what ``store`` wrote for ``key``; None if an entry or a file is missing, elsewhere, or of another size."""
    try:
        content = schema.read(cache / "data" / f"{key}.json")
        files = {name: cache / path for name, (path, _) in content["files"].items()}
        inside = all(path.resolve().is_relative_to((cache / "data").resolve()) for path in files.values())
        complete = inside and all(files[name].stat().st_size == size for name, (_, size) in content["files"].items())
        return CacheEntry(content["origin"], content["fingerprint"], files) if complete else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
