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
    places = numpy.abs(starts[:, None] + numpy.arange(PIXELS) - margin)
    return numpy.where(places < PIXELS, places, 2 * (PIXELS - 1) - places).astype(numpy.int32)


def inside(starts, size):
    distance = numpy.arange(PIXELS) - starts[:, None]
    return (distance >= 0) & (distance < size)


def apply(table, images):
    """Return the augmented images, of shape (n, 32, 32, channel)."""
    samples = numpy.arange(len(images))[:, None, None]
    images = images[samples, table.rows[:, :, None], table.columns[:, None, :]]
    if table.cut_rows is not None:
        images[table.cut_rows[:, :, None] & table.cut_columns[:, None, :]] = 0
    return images
