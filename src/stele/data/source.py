"""The published facts about a data set: its address, its hash and its number of samples."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class PublishedSet:
    """A public data set as its authors publish it."""

    name: str
    url: str
    sha256: str  # of the file at url
    train: int  # samples
    test: int  # samples
    unpacked: Mapping[str, str] = field(default_factory=dict)  # path -> MD5 of each file in the archive

    @property
    def file(self) -> str:
        """The name of the published file."""
        return self.url.rsplit("/", 1)[-1]


def zeros(source: PublishedSet, shape: tuple[int, ...], dtype: type) -> Arrays:
    """Return zero arrays for all samples: x (samples, *shape) of ``dtype`` and y int32 (samples,)."""
    arrays: Arrays = {}
    for split, samples in (("train", source.train), ("test", source.test)):
        arrays[split + "_x"] = numpy.zeros((samples, *shape), dtype)
        arrays[split + "_y"] = numpy.zeros(samples, numpy.int32)
    return arrays
