"""What is published of a data set: its address, its bytes' hash and how many samples it has."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Source:
    """One public data set as its authors publish it."""

    name: str
    url: str
    sha256: str  # of the file at url
    train: int  # samples
    test: int  # samples
    unpacked: Mapping[str, str] = field(default_factory=dict)  # path -> MD5 of what the file holds

    @property
    def file(self) -> str:
        """The published file's name."""
        return self.url.rsplit("/", 1)[-1]


def blank(source: Source, shape: tuple[int, ...], dtype: type) -> Arrays:
    """Zeros for all samples: x (samples, *shape) of ``dtype`` and y int32 (samples,)."""
    arrays: Arrays = {}
    for split, samples in (("train", source.train), ("test", source.test)):
        arrays[split + "_x"] = numpy.zeros((samples, *shape), dtype)
        arrays[split + "_y"] = numpy.zeros(samples, numpy.int32)
    return arrays
