"""Made data of the same shapes as the real sets, which can be learned; the same on every machine.

Only integers from ``numpy.random.RandomState`` and integer arithmetic, so that no rounding differs.
"""

import numpy
from numpy.typing import NDArray

from stele.data.imdb import LENGTH, SHIFT, START, VOCABULARY
from stele.data.source import Arrays, Source, blank

CHUNK = 5000  # images at a time, to be modest with memory
TELLING = 50  # words in each of the two lists that tell praise from blame


def cifar10(source: Source) -> Arrays:
    """x uint8 (n, 32, 32, 3), y int32 (n,) in 0..9: a blocky picture a class, moved and noisy."""
    rng = numpy.random.RandomState(0)
    blocks = rng.randint(-48, 49, (10, 4, 4, 3)).astype(numpy.int16)
    pictures = blocks.repeat(8, axis=1).repeat(8, axis=2)
    arrays = blank(source, (32, 32, 3), numpy.uint8)
    for split in ("train", "test"):
        x, y = arrays[split + "_x"], arrays[split + "_y"]
        y[:] = rng.permutation(len(y)) % 10
        for start in range(0, len(y), CHUNK):
            part = slice(start, start + CHUNK)
            x[part] = _images(rng, pictures, y[part])
        wrong = rng.randint(0, 10, len(y)) == 0  # so that no network is perfect
        y[wrong] = rng.randint(0, 10, wrong.sum())
    return arrays


def _images(
    rng: numpy.random.RandomState, pictures: NDArray[numpy.int16], labels: NDArray[numpy.int32]
) -> NDArray[numpy.uint8]:
    rows = (numpy.arange(32) + rng.randint(0, 9, (len(labels), 1))) % 32
    columns = (numpy.arange(32) + rng.randint(0, 9, (len(labels), 1))) % 32
    shifted = pictures[labels[:, None, None], rows[:, :, None], columns[:, None, :]]
    noise = rng.randint(0, 256, shifted.shape, dtype=numpy.uint8).astype(numpy.int16) - 128
    images: NDArray[numpy.int16] = 128 + shifted + noise // 2
    return images.clip(0, 255).astype(numpy.uint8)


def imdb(source: Source) -> Arrays:
    """x int32 (n, 150), y int32 (n,) 0 or 1: common words more often, some of them telling."""
    rng = numpy.random.RandomState(0)
    telling = rng.permutation(2000)[: 2 * TELLING].reshape(2, TELLING) + 100
    arrays = blank(source, (LENGTH,), numpy.int32)
    for split in ("train", "test"):
        y = arrays[split + "_y"]
        y[:] = rng.permutation(len(y)) % 2
        arrays[split + "_x"][:] = _reviews(rng, telling, y)
    return arrays


def _reviews(
    rng: numpy.random.RandomState, telling: NDArray[numpy.int64], labels: NDArray[numpy.int32]
) -> NDArray[numpy.int64]:
    shape = (len(labels), LENGTH)
    words = rng.randint(0, VOCABULARY - SHIFT, shape) >> rng.randint(0, 14, shape)
    tone = labels[:, None] ^ (rng.randint(0, 4, shape) == 0)  # one telling word in four misleads
    tells = telling[tone, rng.randint(0, TELLING, shape)]
    words = numpy.where(rng.randint(0, 8, shape) == 0, tells, words)
    lengths = rng.randint(60, 400, (len(labels), 1))
    tokens = numpy.where(numpy.arange(LENGTH) < lengths, words + SHIFT, 0)
    tokens[:, 0] = numpy.where(lengths[:, 0] < LENGTH, START, tokens[:, 0])
    return tokens


MAKERS = {"cifar10": cifar10, "imdb": imdb}
