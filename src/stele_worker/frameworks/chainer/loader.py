"""chainer.iterators.MultiprocessIterator, whose workers are processes, over a TransformDataset."""

import numpy
from chainer.dataset import concat_examples
from chainer.datasets import TransformDataset, TupleDataset
from chainer.iterators import MultiprocessIterator

from stele_worker import frameworks

framework = frameworks.load("chainer")


def augment(sample):
    image, label = sample
    top, left = numpy.random.randint(9, size=2)
    image = numpy.pad(image, ((4, 4), (4, 4), (0, 0)), "constant")[top : top + 32, left : left + 32]
    image = image[:, ::-1] if numpy.random.rand() < 0.5 else image
    return image.transpose(2, 0, 1).astype(numpy.float32) / 255, label


def batches(images, labels, batch, workers):
    return loaded(TransformDataset(TupleDataset(images, labels), augment), batch, workers)


def loaded(samples, batch, workers):
    with MultiprocessIterator(samples, batch, repeat=False, n_processes=workers) as loader:
        for part in loader:
            if len(part) == batch:
                yield tuple(framework.put(array) for array in concat_examples(part))
