"""Filters that whiten the patches of images: uncorrelated outputs of variance 1."""

import numpy
from numpy.lib.stride_tricks import as_strided

CHUNK = 500  # images whose patches are in memory at the same time


def whitening_filters(images, size, epsilon):
    """Return float32 (filters, channel, size, size): the eigenvectors of the patches' second moment, scaled.

    images is float32 (n, height, width, channel). The largest eigenvalue is first. An eigenvector
    is divided by the root of its eigenvalue plus ``epsilon``. Its largest number is positive, because the
    sign of an eigenvector is arbitrary. Source: Page, "How to train your ResNet 8: bag of tricks", 2019.
    """
    channels = images.shape[3]
    length, number = channels * size * size, 0
    moment = numpy.zeros((length, length))
    for start in range(0, len(images), CHUNK):
        flat = patches(numpy.ascontiguousarray(images[start : start + CHUNK], numpy.float64), size)
        moment += flat.T.dot(flat)
        number += len(flat)
    values, vectors = numpy.linalg.eigh(moment / (number - 1))
    filters = (vectors / numpy.sqrt(values + epsilon)).T[::-1]
    largest = filters[numpy.arange(len(filters)), numpy.abs(filters).argmax(1)]
    filters = filters * numpy.sign(largest)[:, None]
    return filters.reshape(-1, channels, size, size).astype(numpy.float32)


def patches(images, size):
    """Return all patches of contiguous images (n, height, width, channel): (patches, channel * size * size)."""
    batch, height, width, channels = images.shape
    n, h, w, c = images.strides
    shape = (batch, height - size + 1, width - size + 1, channels, size, size)
    return as_strided(images, shape, (n, h, w, c, h, w)).reshape(-1, channels * size * size)
