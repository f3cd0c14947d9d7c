"""Read CIFAR-10 from its six pickled batches, extracted or in cifar-10-python.tar.gz.

Source: Krizhevsky, 2009, https://www.cs.toronto.edu/~kriz/cifar.html. The MD5 hashes of the batches are those of
torchvision.datasets.CIFAR10.
"""

import gzip
import itertools
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from stele.data import unpickling
from stele.data.source import Arrays, PublishedSet, zeros
from stele.errors import DataError

BATCHES = {
    "cifar-10-batches-py/data_batch_1": "c99cafc152244af753f735de768cd75f",
    "cifar-10-batches-py/data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "cifar-10-batches-py/data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "cifar-10-batches-py/data_batch_4": "634d18415352ddfa80567beed471001a",
    "cifar-10-batches-py/data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "cifar-10-batches-py/test_batch": "40351d587109b95175f43aff81a1287e",
}
SOURCE = PublishedSet(
    name="cifar10",
    url="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    sha256="6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    train=50000,
    test=10000,
    unpacked=BATCHES,
)
LARGEST = 40 * 2**20  # bytes; a published batch has 31 million
MEMBERS = 64  # maximum number of files in the archive; the published one has nine


def read(files: list[Path], source: PublishedSet) -> Arrays:
    """Return x uint8 (n, 32, 32, 3) in RGB and y int32 (n,) in 0..9, in the order of the batches.

    ``files`` is either the archive or the six batches. Raises DataError if they are unsafe or damaged.
    """
    arrays = zeros(source, (32, 32, 3), numpy.uint8)
    for name, where, raw in _read_extracted(files) if len(files) > 1 else _read_archive(files[0]):
        split, rows = _position(name, source)
        x, y = _decode_batch(raw, where, rows.stop - rows.start)
        arrays[split + "_x"][rows], arrays[split + "_y"][rows] = x, y
    return arrays


def _position(name: str, source: PublishedSet) -> tuple[str, slice]:
    """Return the split of a batch and its rows in the arrays of the split."""
    if name.endswith("test_batch"):
        return "test", slice(0, source.test)
    number, size = int(name[-1]), source.train // 5
    return "train", slice((number - 1) * size, number * size)


def _decode_batch(raw: bytes, where: str, rows: int) -> tuple[NDArray[numpy.uint8], list[int]]:
    entry = unpickling.load(raw, where)
    if not isinstance(entry, dict):
        raise DataError(f"{where} contains a {type(entry).__name__}, expected a dict.")
    data, labels = (entry.get(key.encode(), entry.get(key)) for key in ("data", "labels"))
    x = unpickling.uint8_matrix(data, (rows, 3072), where)
    if not isinstance(labels, list) or len(labels) != rows:
        raise DataError(f"{where} does not contain a list of {rows} labels.")
    if not all(type(label) is int and 0 <= label <= 9 for label in labels):
        raise DataError(f"{where} contains a label that is not an integer from 0 to 9.")
    return x.reshape(rows, 3, 32, 32).transpose(0, 2, 3, 1), labels


def _read_extracted(files: list[Path]) -> Iterator[tuple[str, str, bytes]]:
    for file in files:
        if file.stat().st_size > LARGEST:
            raise DataError(f"{file} is larger than any CIFAR-10 batch.")
        yield file.name, str(file), file.read_bytes()


class _LimitedFile:
    """A file object that fails after ``left`` uncompressed bytes, as a protection against decompression bombs."""

    def __init__(self, file: gzip.GzipFile, left: int) -> None:
        self.file, self.left = file, left

    def read(self, size: int) -> bytes:
        data = self.file.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise tarfile.ReadError("its uncompressed size is larger than CIFAR-10")
        return data


def _read_archive(path: Path) -> Iterator[tuple[str, str, bytes]]:
    """Read members by exact name into memory. Nothing is extracted, so paths and links in the archive are harmless."""
    missing = set(BATCHES)
    try:
        with gzip.open(path) as plain:
            stream: Any = _LimitedFile(plain, 8 * LARGEST)
            with tarfile.open(fileobj=stream, mode="r|") as tar:
                for member in itertools.islice(tar, MEMBERS):
                    if member.name in missing:
                        missing.remove(member.name)
                        yield member.name, f"{path} ({member.name})", _read_member(tar, member)
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError) as problem:
        raise DataError(f"{path} is not a complete tar.gz archive ({problem}).") from None
    if missing:
        raise DataError(f"{path} does not contain {min(missing)}.")


def _read_member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member) if member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) else None
    if file is None or member.size > LARGEST:
        raise tarfile.ReadError(f"{member.name} is not a regular file of the size of a batch")
    return file.read()
