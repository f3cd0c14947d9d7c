"""chainer.iterators.MultiprocessIterator, whose workers are processes, over an ImageDataset."""

from functools import partial

import numpy
from chainer.datasets import ImageDataset, TransformDataset, TupleDataset

from stele_worker.frameworks.chainer.loader import loaded


def augment(size, sample):
    image, label = sample
    top, left = numpy.random.randint(image.shape[1] - size + 1, size=2)
    image = image[:, top : top + size, left : left + size]
    return (image[:, :, ::-1] if numpy.random.rand() < 0.5 else image) / 255, label


def file_batches(paths, labels, size, batch, workers):
    samples = TransformDataset(TupleDataset(ImageDataset(paths), labels), partial(augment, size))
    return loaded(samples, batch, workers)
