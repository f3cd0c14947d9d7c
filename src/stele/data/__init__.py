"""The data room: real data sets and pretrained weights, laid out as plain files for workers.

It knows where data may be (STELE_DATA, the user's cache, the official addresses) and says where it
came from. It knows neither tasks' scales nor batch order, and executes nothing that it loads.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stele.data import cache as _cache
from stele.data import cifar10, download, imdb, synthetic, weights
from stele.data.cache import folder as cache_folder
from stele.data.errors import DataError, DataUnavailable
from stele.data.source import Arrays, Source

__all__ = ["DataError", "Dataset", "Weights", "cache_folder", "load", "pretrained"]

SETS = {"cifar10": cifar10, "imdb": imdb}


@dataclass(frozen=True)
class Dataset:
    """A data set as a worker gets it: paths of plain .npy files."""

    name: str
    origin: str  # "official", "from STELE_DATA" or "synthetic"
    fingerprint: str  # 16 hexadecimal digits over the arrays' bytes
    paths: Mapping[str, Path]  # train_x, train_y, test_x, test_y
    notice: str | None = None  # one line for the user: why the data is synthetic


@dataclass(frozen=True)
class Weights:
    """Pretrained weights as a worker gets them: the path of a plain .npz of float32 arrays."""

    origin: str  # "pretrained"
    fingerprint: str
    path: Path


def load(name: str, *, folder: Path | None = None, cache: Path | None = None) -> Dataset:
    """The data set ``cifar10`` or ``imdb``: real if it can be had, else synthetic with a notice.

    cifar10: x uint8 (n, 32, 32, 3), y int32 (n,) in 0..9; 50,000 and 10,000 images.
    imdb: x int32 (n, 150) tokens under 30,000, y int32 (n,) 0 or 1; 25,000 and 25,000 reviews.
    ``folder`` stands for STELE_DATA and ``cache`` for STELE_CACHE. DataError if a file that is
    there is hostile, damaged or incomplete, or the cache cannot be written.
    """
    if name not in SETS:
        raise DataError(f"No data set {name!r}; there are {' and '.join(SETS)}.")
    source, cache = SETS[name].SOURCE, cache or cache_folder()
    folder = folder or data_folder()
    with _usable(cache):
        try:
            files = _in_folder(source, folder) or [_downloaded(source, cache)]
        except DataUnavailable as problem:
            return _synthetic(source, cache, str(problem))
        return _real(source, files, cache)


def pretrained(*, folder: Path | None = None, cache: Path | None = None) -> Weights | None:
    """ResNet-50's weights from resnet50.safetensors in STELE_DATA, under torchvision's names.

    None where there is no such file: then the weights are seeded. DataError if the file is hostile,
    damaged or another network's.
    """
    folder, cache = folder or data_folder(), cache or cache_folder()
    path = folder / weights.FILE if folder else None
    if path is None or not path.is_file():
        return None
    with _usable(cache):
        key = _cache.stamp("resnet50", [path])
        known = _cache.recall(cache, key)
        if known is None:
            known = _cache.keep(cache, key, "pretrained", weights.read(path), archive="weights")
    return Weights(known.origin, known.fingerprint, known.files["weights"])


def data_folder() -> Path | None:
    """STELE_DATA; None if unset. DataError if it is not a folder."""
    value = os.environ.get("STELE_DATA")
    if not value:
        return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise DataError(f"STELE_DATA={value} is not a folder. Correct it, or unset it to download.")
    return folder


def _in_folder(source: Source, folder: Path | None) -> list[Path] | None:
    """The published file, or what it holds; None if ``folder`` has neither."""
    if folder is None:
        return None
    unpacked = [folder / path for path in source.unpacked]
    if unpacked and unpacked[0].parent.is_dir():
        for path in unpacked:
            if not path.is_file():
                raise DataError(f"{path} is missing. Unpack all of {source.url} there.")
        return unpacked
    archive = folder / source.file
    return [archive] if archive.is_file() else None


def _downloaded(source: Source, cache: Path) -> Path:
    path = cache / "downloads" / source.file
    return path if path.exists() else download.fetch(source.url, source.sha256, path)


def _real(source: Source, files: list[Path], cache: Path) -> Dataset:
    key = _cache.stamp(source.name, files)
    known = _cache.recall(cache, key)
    if known is None:
        origin = _origin(source, files, cache)
        known = _cache.keep(cache, key, origin, _read(source, files))
    return Dataset(source.name, known.origin, known.fingerprint, known.files)


def _read(source: Source, files: list[Path]) -> Arrays:
    try:
        arrays: Arrays = SETS[source.name].read(files, source)
    except DataError as problem:
        raise DataError(f"{problem} Get the genuine file from {source.url}.") from None
    return arrays


def _origin(source: Source, files: list[Path], cache: Path) -> str:
    if len(files) > 1:
        genuine = [_md5(file) for file in files] == list(source.unpacked.values())
        return "official" if genuine else "from STELE_DATA"
    if download.sha256_of(files[0]) == source.sha256:
        return "official"
    if cache in files[0].parents:
        raise DataError(f"{files[0]} is not the published file. Delete it to download it again.")
    return "from STELE_DATA"


def _md5(file: Path) -> str:
    return hashlib.md5(file.read_bytes(), usedforsecurity=False).hexdigest()


def _synthetic(source: Source, cache: Path, reason: str) -> Dataset:
    key = _cache.stamp(f"{source.name}-synthetic-{source.train}-{source.test}", [])
    known = _cache.recall(cache, key)
    if known is None:
        arrays = synthetic.MAKERS[source.name](source)
        known = _cache.keep(cache, key, "synthetic", arrays)
    notice = (
        f"{source.name} is synthetic: {reason}. "
        f"For the real one set STELE_DATA to a folder that holds {source.file}."
    )
    return Dataset(source.name, known.origin, known.fingerprint, known.files, notice)


@contextlib.contextmanager
def _usable(cache: Path) -> Iterator[None]:
    """Say what to do when a disk is full or a folder may not be written or read."""
    try:
        yield
    except OSError as problem:
        raise DataError(
            f"Data could not be laid out in {cache}: {problem}. "
            "Give access or make room, or set STELE_CACHE to a folder that you can write."
        ) from problem
