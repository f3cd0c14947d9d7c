"""Small data files in the public formats, valid and malicious."""

import dataclasses
import io
import os
import pickle
import tarfile
from pathlib import Path

import numpy

from stele.data import cifar10, imdb

CIFAR10 = dataclasses.replace(cifar10.SOURCE, train=50, test=10)
IMDB = dataclasses.replace(imdb.SOURCE, train=4, test=3)


class Malicious:
    """An object whose unpickling with the standard library creates a file."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.system, (f"touch {self.mark}",)


def batch(seed, **changes):
    """Return a batch of ten images as Python 3 writes it for Python 2."""
    rng = numpy.random.RandomState(seed)
    entry = {b"data": rng.randint(0, 256, (10, 3072)).astype(numpy.uint8), b"labels": [*range(10)]}
    entry.update({name.encode(): value for name, value in changes.items()})
    return pickle.dumps(entry, protocol=2)


def batches(**changes):
    """Return {path: bytes} of the six files of CIFAR-10; the changes apply to the first."""
    return {path: batch(n, **({} if n else changes)) for n, path in enumerate(cifar10.BATCHES)}


def unpack(folder, contents):
    """Write {path: bytes} and return the paths."""
    for path, raw in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(raw)
    return [folder / path for path in contents]


def archive(path, contents, **kinds):
    """Write {path: bytes} as a tar.gz; ``kinds`` are the types of members that are not regular files."""
    with tarfile.open(path, "w:gz") as tar:
        for name, raw in contents.items():
            member = tarfile.TarInfo(name)
            member.size, member.linkname = len(raw), "/etc/passwd"
            member.type = kinds.get(Path(name).name, tarfile.REGTYPE)
            tar.addfile(member, io.BytesIO(raw))
    return path


def reviews(*lists):
    """Return an object array of lists, also if the lists have the same length."""
    array = numpy.empty(len(lists), object)
    array[:] = lists
    return array


def npz(path, **changes):
    """Write four training and three test reviews in the format of keras.datasets."""
    arrays = {
        "x_train": reviews([5, 6], [], list(range(200)), [29996, 29997, 88585]),
        "y_train": numpy.array([1, 0, 1, 0]),
        "x_test": reviews([1], list(range(149)), list(range(150))),
        "y_test": numpy.array([0, 1, 1]),
    }
    numpy.savez(path, **{**arrays, **changes})
    return path
