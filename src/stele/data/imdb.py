"""Read IMDB reviews from imdb.npz of keras.datasets as rows of 150 tokens.

The members of the archive are parsed here, because the reviews are pickled objects and
``numpy.load(allow_pickle=True)`` would execute the code in them.
Source: Maas et al., 2011; the encoding of keras.datasets.imdb (start 1, OOV 2, shift 3).
"""

import io
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from stele.data import unpickling
from stele.data.source import Arrays, PublishedSet, zeros
from stele.errors import DataError

SOURCE = PublishedSet(
    name="imdb",
    url="https://storage.googleapis.com/tensorflow/tf-keras-datasets/imdb.npz",
    sha256="69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f",
    train=25000,
    test=25000,
)
VOCABULARY = 30000
LENGTH = 150  # tokens
START, UNKNOWN, SHIFT = 1, 2, 3  # 0 is the padding
LARGEST = 40 * 2**20  # bytes; a published member has 14 million


def read(files: list[Path], source: PublishedSet) -> Arrays:
    """Return x int32 (n, 150), the last tokens with padding at the end, and y int32 (n,), 1 for a positive review.

    ``files`` contains the archive; its order is kept. Raises DataError if it is unsafe or damaged.
    """
    (path,) = files
    arrays = zeros(source, (LENGTH,), numpy.int32)
    try:
        with zipfile.ZipFile(path) as archive:
            for split, count in (("train", source.train), ("test", source.test)):
                reviews = _read_reviews(archive, path, f"x_{split}.npy", count)
                for row, words in zip(arrays[split + "_x"], reviews, strict=True):
                    tokens = encode(words, f"{path} (x_{split}.npy)")
                    row[: len(tokens)] = tokens
                arrays[split + "_y"][:] = _read_labels(archive, path, f"y_{split}.npy", count)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as problem:
        raise DataError(f"{path} is not a complete npz archive ({problem}).") from None
    return arrays


def encode(words: object, where: str) -> list[int]:
    """Return the last 150 tokens of a start token followed by ``word + 3``, or by 2 outside the vocabulary."""
    if not isinstance(words, list):
        raise DataError(f"{where} contains a {type(words).__name__}, expected a list of words.")
    tail = words[-LENGTH:]
    if not all(type(word) is int and word >= 0 for word in tail):
        raise DataError(f"{where} contains a word that is not a non-negative integer.")
    tokens = [word + SHIFT if word + SHIFT < VOCABULARY else UNKNOWN for word in tail]
    return tokens if len(words) >= LENGTH else [START, *tokens]


def _read_reviews(archive: zipfile.ZipFile, path: Path, name: str, count: int) -> list[Any]:
    where = f"{path} ({name})"
    dtype, body = _read_member(archive, where, name, count)
    if dtype != numpy.dtype(object):
        raise DataError(f"{where} is {dtype}, expected lists of words.")
    return unpickling.object_list(unpickling.load(body, where), count, where)


def _read_labels(archive: zipfile.ZipFile, path: Path, name: str, count: int) -> NDArray[Any]:
    where = f"{path} ({name})"
    dtype, body = _read_member(archive, where, name, count)
    if dtype.kind not in "iu" or len(body) != count * dtype.itemsize:
        raise DataError(f"{where} is {dtype} in {len(body)} bytes, expected {count} integers.")
    labels = numpy.frombuffer(body, dtype)
    if labels.min() < 0 or labels.max() > 1:
        raise DataError(f"{where} contains a label that is neither 0 nor 1.")
    return labels


def _read_member(archive: zipfile.ZipFile, where: str, name: str, count: int) -> tuple[numpy.dtype[Any], bytes]:
    """Return the declared dtype and the bytes after the header. The declared shape is never allocated."""
    if name not in archive.namelist():
        raise DataError(f"{where} is missing.")
    info = archive.getinfo(name)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(f"{where} has a compression that NumPy does not write.")
    if info.file_size > LARGEST:
        raise DataError(f"{where} declares {info.file_size:,} bytes, more than IMDB.")
    file = io.BytesIO(archive.read(name))
    shape, dtype = _read_header(file, where)
    if shape != (count,):
        raise DataError(f"{where} declares the shape {shape}, expected ({count},).")
    return dtype, file.read()


def _read_header(file: io.BytesIO, where: str) -> tuple[tuple[int, ...], numpy.dtype[Any]]:
    readers = {
        (1, 0): numpy.lib.format.read_array_header_1_0,
        (2, 0): numpy.lib.format.read_array_header_2_0,
    }
    try:
        shape, _, dtype = readers[numpy.lib.format.read_magic(file)](file)
    except Exception as problem:  # a malicious header can raise nearly any exception
        name = type(problem).__name__
        raise DataError(f"{where} has no readable .npy header ({name}).") from None
    return shape, dtype
