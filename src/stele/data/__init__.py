"""Data sets and pretrained weights, stored as plain files for workers.

This package searches for data in STELE_DATA, in the user's cache and at the official addresses, and records the
origin. It does not depend on the scale or the batch order of a task, and executes nothing that it loads.
"""

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stele import config as _config
from stele.config import Config
from stele.data import cache as _cache
from stele.data import cifar10, download, imdb, synthetic, weights
from stele.data.source import Arrays, PublishedSet
from stele.errors import DataError, DataUnavailable
from stele.text import unknown_message

__all__ = ["DataError", "Dataset", "Weights", "load", "load_pretrained"]

SETS = {"cifar10": cifar10, "imdb": imdb}


@dataclass(frozen=True)
class Dataset:
    """A data set in the form that workers read: paths of plain .npy files."""

    name: str
    origin: str  # "official", "from STELE_DATA" or "synthetic"
    fingerprint: str  # 16 hexadecimal digits over the arrays' bytes
    paths: Mapping[str, Path]  # train_x, train_y, test_x, test_y
    notice: str | None = None  # a line for the user: why the data is synthetic


@dataclass(frozen=True)
class Weights:
    """Pretrained weights in the form that workers read: the path of a plain .npz of float32 arrays."""

    origin: str  # "pretrained"
    fingerprint: str
    path: Path


def load(name: str, config: Config | None = None) -> Dataset:
    """Return the data set ``cifar10`` or ``imdb``: real data if available, else synthetic data with a notice.

    cifar10: x uint8 (n, 32, 32, 3), y int32 (n,) in 0..9; 50,000 and 10,000 images.
    imdb: x int32 (n, 150) tokens under 30,000, y int32 (n,) 0 or 1; 25,000 and 25,000 reviews.
    Raises DataError if an existing file is unsafe, damaged or incomplete, if STELE_DATA is not a folder, or if the
    cache cannot be written.
    """
    if name not in SETS:
        raise DataError(unknown_message("data set", name, SETS))
    config = config or _config.current()
    source, cache, folder = SETS[name].SOURCE, config.cache, data_folder(config)
    with _explain_os_errors(cache):
        _cache.create(cache)
        try:
            files = _in_folder(source, folder) or [_download(source, config)]
        except DataUnavailable as problem:
            return _load_synthetic(source, cache, str(problem))
        return _load_real(source, files, cache)


def load_pretrained(config: Config | None = None) -> Weights | None:
    """Return the weights of ResNet-50 from resnet50.safetensors in STELE_DATA, with the names of torchvision.

    Returns None if there is no such file; the weights are then seeded. Raises DataError if the file is damaged or has
    the weights of another network.
    """
    config = config or _config.current()
    folder, cache = data_folder(config), config.cache
    path = folder / weights.FILE if folder else None
    if path is None or not path.is_file():
        return None
    with _explain_os_errors(cache):
        _cache.create(cache)
        key = _cache.source_key("resnet50", [path])
        entry = _cache.look_up(cache, key)
        if entry is None:
            entry = _cache.store(cache, key, "pretrained", weights.read(path), archive="weights")
    return Weights(entry.origin, entry.fingerprint, entry.files["weights"])


def state(name: str | None, config: Config) -> tuple[object, ...]:
    """Return what changes if a file changes from which ``load`` or ``load_pretrained`` reads."""
    folder, sources = data_folder(config), [SETS[name].SOURCE] if name in SETS else []
    paths = [config.cache / "downloads" / source.file for source in sources]
    if folder is not None:
        names = [name for source in sources for name in (source.file, *source.unpacked)]
        paths += [folder / name for name in (*names, weights.FILE)]
    return tuple((str(path), _times(path)) for path in paths)


def _times(path: Path) -> tuple[int, ...] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino


def data_folder(config: Config) -> Path | None:
    """Return STELE_DATA, or None if it is not set. Raises DataError if it is not a folder."""
    if config.data is not None and not config.data.is_dir():
        raise DataError(f"STELE_DATA={config.data} is not a folder. Correct it, or unset it to download.")
    return config.data


def _in_folder(source: PublishedSet, folder: Path | None) -> list[Path] | None:
    """Return the published archive, or its extracted files; None if ``folder`` contains neither."""
    if folder is None:
        return None
    unpacked = [folder / path for path in source.unpacked]
    if unpacked and unpacked[0].parent.is_dir():
        for path in unpacked:
            if not path.is_file():
                raise DataError(f"{path} is missing. Extract all files of {source.url} there.")
        return unpacked
    archive = folder / source.file
    return [archive] if archive.is_file() else None


def _download(source: PublishedSet, config: Config) -> Path:
    """Return the published file in the cache, downloaded if necessary. Raises DataUnavailable."""
    path = config.cache / "downloads" / source.file
    if path.exists():
        return path
    if config.offline:
        raise DataUnavailable("STELE_OFFLINE is set, so nothing is downloaded")
    return download.fetch(source.url, source.sha256, path)


def _load_real(source: PublishedSet, files: list[Path], cache: Path) -> Dataset:
    key = _cache.source_key(source.name, files)
    entry = _cache.look_up(cache, key)
    if entry is None:
        origin = _origin(source, files, cache)
        entry = _cache.store(cache, key, origin, _read(source, files))
    return Dataset(source.name, entry.origin, entry.fingerprint, entry.files)


def _read(source: PublishedSet, files: list[Path]) -> Arrays:
    try:
        arrays: Arrays = SETS[source.name].read(files, source)
    except DataError as problem:
        raise DataError(f"{problem} Get the published file from {source.url}.") from None
    return arrays


def _origin(source: PublishedSet, files: list[Path], cache: Path) -> str:
    """Return "official" if the hashes are the published ones. Raises DataError for a damaged download."""
    if len(files) > 1:
        is_official = [_md5(file) for file in files] == list(source.unpacked.values())
        return "official" if is_official else "from STELE_DATA"
    if download.sha256_of(files[0]) == source.sha256:
        return "official"
    if cache in files[0].parents:
        raise DataError(f"{files[0]} is not the published file. Delete it to download it again.")
    return "from STELE_DATA"


def _md5(file: Path) -> str:
    return hashlib.md5(file.read_bytes(), usedforsecurity=False).hexdigest()


def _load_synthetic(source: PublishedSet, cache: Path, reason: str) -> Dataset:
    key = _cache.source_key(f"{source.name}-synthetic-{source.train}-{source.test}", [])
    entry = _cache.look_up(cache, key)
    if entry is None:
        arrays = synthetic.GENERATORS[source.name](source)
        entry = _cache.store(cache, key, "synthetic", arrays)
    notice = (
        f"{source.name} is synthetic: {reason}. "
        f"For the real data, set STELE_DATA to a folder that contains {source.file}."
    )
    return Dataset(source.name, entry.origin, entry.fingerprint, entry.files, notice)


@contextlib.contextmanager
def _explain_os_errors(cache: Path) -> Iterator[None]:
    """Turn an OSError, such as a full disk or a missing permission, into a DataError that says what to do."""
    try:
        yield
    except OSError as problem:
        raise DataError(
            f"Cannot write data to {cache}: {problem}. "
            "Check the permissions and the free space, or set STELE_CACHE to a different folder."
        ) from problem
