"""Random crops, flips and squares cut out of images, as tables in NumPy: every framework augments by the same ones.

A table names, for each image of an epoch, the rows and the columns of the image that it is made of. A crop from the
image with reflected pixels around it, and a flip, are both a choice of rows and columns.
"""

from typing import NamedTuple, Optional

import numpy

PIXELS = 32


class Table(NamedTuple):
    """rows and columns: int32 (n, 32), which pixel of the image each pixel comes from.

    cut_rows and cut_columns: bool (n, 32); where both hold, the pixel becomes 0. None if nothing is cut out.
    """

    rows: numpy.ndarray
    columns: numpy.ndarray
    cut_rows: Optional[numpy.ndarray]
    cut_columns: Optional[numpy.ndarray]


class Plan(NamedTuple):
    """What an epoch of the open division changes in the images."""

    samples: int
    margin: int  # reflected pixels on each side, from which a crop is taken
    cutout: int  # pixels of the side of a square that is cut out; 0: none
    alternates: bool  # an image that is flipped in one epoch is not flipped in the next


def drawn(plan, draw, pixels, seed, epoch):
    """Return the Table of an epoch in a framework's arrays, from its own random numbers.

    draw(samples, limit, seed) returns integers (samples, 1) below the limit; ``pixels`` counts from 0 to 31.
    """

    def random(limit, number, epoch=epoch):
        return draw(plan.samples, limit, (seed * 1024 + epoch) * 8 + number)  # a seed of each draw

    flips = (random(2, 0, 0) + epoch) % 2 if plan.alternates else random(2, 0)
    tops, lefts = (random(2 * plan.margin + 1, number) - plan.margin for number in (1, 2))
    columns = pixels + flips * (PIXELS - 1 - 2 * pixels)
    table = Table(reflected(tops + pixels), reflected(lefts + columns), None, None)
    if not plan.cutout:
        return table
    rows, columns = (pixels - random(PIXELS - plan.cutout + 1, number) for number in (3, 4))
    return table._replace(cut_rows=within(rows, plan.cutout), cut_columns=within(columns, plan.cutout))


def reflected(places):
    """Return places outside of the image as those inside that they reflect."""
    last = PIXELS - 1
    return last - abs(last - abs(places))


def within(distances, size):
    return (distances >= 0) & (distances < size)


def crops(rng, samples, margin):
    """Return a Table of random crops from images with ``margin`` reflected pixels around them."""
    tops, lefts = rng.randint(0, 2 * margin + 1, (2, samples))
    return Table(window(tops, margin), window(lefts, margin), None, None)


def flipped(table, flips):
    """Return the Table with the images flipped for which ``flips``, bool (n,), holds."""
    columns = numpy.where(flips[:, None], table.columns[:, ::-1], table.columns)
    return table._replace(columns=columns)


def cut(table, rng, size):
    """Return the Table with a random square of ``size`` pixels cut out of each image."""
    tops, lefts = rng.randint(0, PIXELS - size + 1, (2, len(table.rows)))
    return table._replace(cut_rows=inside(tops, size), cut_columns=inside(lefts, size))


def coins(rng, samples):
    return rng.randint(0, 2, samples).astype(bool)


def window(starts, margin):
    """Return the pixels of windows that start at ``starts`` of an image with ``margin`` reflected pixels around it."""
    return reflected(starts[:, None] + numpy.arange(PIXELS) - margin).astype(numpy.int32)


def inside(starts, size):
    return within(numpy.arange(PIXELS) - starts[:, None], size)


def apply(table, images):
    """Return the augmented images, of shape (n, 32, 32, channel)."""
    samples = numpy.arange(len(images))[:, None, None]
    images = images[samples, table.rows[:, :, None], table.columns[:, None, :]]
    if table.cut_rows is not None:
        images[table.cut_rows[:, :, None] & table.cut_columns[:, None, :]] = 0
    return images
