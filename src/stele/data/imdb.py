"""IMDB reviews: imdb.npz as keras.datasets has it, into rows of 150 tokens.

The archive is read member by member, because its reviews are pickled objects and
``numpy.load(allow_pickle=True)`` would run whatever is in them.
Source: Maas et al., 2011; keras.datasets.imdb, whose encoding this is (start 1, OOV 2, shift 3).
"""

import io
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from stele.data import unpickling
from stele.data.errors import DataError
from stele.data.source import Arrays, Source, blank

SOURCE = Source(
    name="imdb",
    url="https://storage.googleapis.com/tensorflow/tf-keras-datasets/imdb.npz",
    sha256="69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f",
    train=25000,
    test=25000,
)
VOCABULARY = 30000
LENGTH = 150  # tokens
START, UNKNOWN, SHIFT = 1, 2, 3  # 0 pads
LARGEST = 40 * 2**20  # bytes; a genuine member has 14 million


def read(files: list[Path], source: Source) -> Arrays:
    """x int32 (n, 150), the last tokens, padded with 0 at the end; y int32 (n,), 1 for praise.

    ``files`` is the one archive; the order is the file's. DataError if it is hostile or damaged.
    """
    (path,) = files
    arrays = blank(source, (LENGTH,), numpy.int32)
    try:
        with zipfile.ZipFile(path) as archive:
            for split, count in (("train", source.train), ("test", source.test)):
                reviews = _reviews(archive, path, f"x_{split}.npy", count)
                for row, words in zip(arrays[split + "_x"], reviews, strict=True):
                    tokens = encode(words, f"{path} (x_{split}.npy)")
                    row[: len(tokens)] = tokens
                arrays[split + "_y"][:] = _labels(archive, path, f"y_{split}.npy", count)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as problem:
        raise DataError(f"{path} is not a whole npz archive ({problem}).") from None
    return arrays


def encode(words: object, where: str) -> list[int]:
    """The last 150 of: a start token, then each word plus 3, or 2 where that is no token."""
    if not isinstance(words, list):
        raise DataError(f"{where} holds a {type(words).__name__} where a review's list belongs.")
    tail = words[-LENGTH:]
    if not all(type(word) is int and word >= 0 for word in tail):
        raise DataError(f"{where} holds a word that is not an integer from 0 on.")
    tokens = [word + SHIFT if word + SHIFT < VOCABULARY else UNKNOWN for word in tail]
    return tokens if len(words) >= LENGTH else [START, *tokens]


def _reviews(archive: zipfile.ZipFile, path: Path, name: str, count: int) -> list[Any]:
    where = f"{path} ({name})"
    dtype, body = _member(archive, where, name, count)
    if dtype != numpy.dtype(object):
        raise DataError(f"{where} is {dtype} where lists of words belong.")
    return unpickling.objects(unpickling.load(body, where), count, where)


def _labels(archive: zipfile.ZipFile, path: Path, name: str, count: int) -> NDArray[Any]:
    where = f"{path} ({name})"
    dtype, body = _member(archive, where, name, count)
    if dtype.kind not in "iu" or len(body) != count * dtype.itemsize:
        raise DataError(f"{where} is {dtype} in {len(body)} bytes where {count} integers belong.")
    labels = numpy.frombuffer(body, dtype)
    if labels.min() < 0 or labels.max() > 1:
        raise DataError(f"{where} holds a label that is neither 0 nor 1.")
    return labels


def _member(archive: zipfile.ZipFile, where: str, name: str, count: int) -> tuple[numpy.dtype[Any], bytes]:
    """The declared dtype and the bytes after the header, which never allocates what it declares."""
    if name not in archive.namelist():
        raise DataError(f"{where} is missing.")
    info = archive.getinfo(name)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(f"{where} is compressed in a way that NumPy does not write.")
    if info.file_size > LARGEST:
        raise DataError(f"{where} declares {info.file_size:,} bytes, more than IMDB has.")
    file = io.BytesIO(archive.read(name))
    shape, dtype = _header(file, where)
    if shape != (count,):
        raise DataError(f"{where} declares the shape {shape} where ({count},) belongs.")
    return dtype, file.read()


def _header(file: io.BytesIO, where: str) -> tuple[tuple[int, ...], numpy.dtype[Any]]:
    readers = {
        (1, 0): numpy.lib.format.read_array_header_1_0,
        (2, 0): numpy.lib.format.read_array_header_2_0,
    }
    try:
        shape, _, dtype = readers[numpy.lib.format.read_magic(file)](file)
    except Exception as problem:  # hostile text in a header can raise nearly anything
        name = type(problem).__name__
        raise DataError(f"{where} has no readable .npy header ({name}).") from None
    return shape, dtype
