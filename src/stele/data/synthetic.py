"""Synthetic data with the shapes of the real data sets. It can be learned and is equal on every machine.

The generators use only integers from ``numpy.random.RandomState`` and integer arithmetic, which has no rounding.
"""

import numpy
from numpy.typing import NDArray

from stele.data.imdb import LENGTH, SHIFT, START, VOCABULARY
from stele.data.source import Arrays, PublishedSet, zeros

CHUNK = 5000  # images at a time, to limit the memory
INDICATIVE = 50  # number of words in each of the two lists, which indicate a positive or a negative review


def cifar10(source: PublishedSet) -> Arrays:
    """Return x uint8 (n, 32, 32, 3), y int32 (n,) in 0..9: one picture per class, shifted and with noise."""
    rng = numpy.random.RandomState(0)
    blocks = rng.randint(-48, 49, (10, 4, 4, 3)).astype(numpy.int16)
    pictures = blocks.repeat(8, axis=1).repeat(8, axis=2)
    arrays = zeros(source, (32, 32, 3), numpy.uint8)
    for split in ("train", "test"):
        x, y = arrays[split + "_x"], arrays[split + "_y"]
        y[:] = rng.permutation(len(y)) % 10
        for start in range(0, len(y), CHUNK):
            part = slice(start, start + CHUNK)
            x[part] = _make_images(rng, pictures, y[part])
        wrong = rng.randint(0, 10, len(y)) == 0  # so that no network can be perfect
        y[wrong] = rng.randint(0, 10, wrong.sum())
    return arrays


def _make_images(
    rng: numpy.random.RandomState, pictures: NDArray[numpy.int16], labels: NDArray[numpy.int32]
) -> NDArray[numpy.uint8]:
    rows = (numpy.arange(32) + rng.randint(0, 9, (len(labels), 1))) % 32
    columns = (numpy.arange(32) + rng.randint(0, 9, (len(labels), 1))) % 32
    shifted = pictures[labels[:, None, None], rows[:, :, None], columns[:, None, :]]
    noise = rng.randint(0, 256, shifted.shape, dtype=numpy.uint8).astype(numpy.int16) - 128
    images: NDArray[numpy.int16] = 128 + shifted + noise // 2
    return images.clip(0, 255).astype(numpy.uint8)


def imdb(source: PublishedSet) -> Arrays:
    """Return x int32 (n, 150), y int32 (n,) 0 or 1: words of unequal frequency, some of them indicative."""
    rng = numpy.random.RandomState(0)
    indicative = rng.permutation(2000)[: 2 * INDICATIVE].reshape(2, INDICATIVE) + 100
    arrays = zeros(source, (LENGTH,), numpy.int32)
    for split in ("train", "test"):
        y = arrays[split + "_y"]
        y[:] = rng.permutation(len(y)) % 2
        arrays[split + "_x"][:] = _make_reviews(rng, indicative, y)
    return arrays


def _make_reviews(
    rng: numpy.random.RandomState, indicative: NDArray[numpy.int64], labels: NDArray[numpy.int32]
) -> NDArray[numpy.int64]:
    shape = (len(labels), LENGTH)
    words = rng.randint(0, VOCABULARY - SHIFT, shape) >> rng.randint(0, 14, shape)
    tone = labels[:, None] ^ (rng.randint(0, 4, shape) == 0)  # one indicative word in four has the wrong tone
    indications = indicative[tone, rng.randint(0, INDICATIVE, shape)]
    words = numpy.where(rng.randint(0, 8, shape) == 0, indications, words)
    lengths = rng.randint(60, 400, (len(labels), 1))
    tokens = numpy.where(numpy.arange(LENGTH) < lengths, words + SHIFT, 0)
    tokens[:, 0] = numpy.where(lengths[:, 0] < LENGTH, START, tokens[:, 0])
    return tokens


GENERATORS = {"cifar10": cifar10, "imdb": imdb}
