"""Grain, the loader that JAX recommends, whose workers are threads; the batches are copied to the device."""

import grain
import jax
import numpy


class Augment(grain.transforms.RandomMap):
    def random_map(self, sample, rng):
        image, label = sample
        top, left = rng.integers(9, size=2)
        image = numpy.pad(image, ((4, 4), (4, 4), (0, 0)))[top : top + 32, left : left + 32]
        return (image[:, ::-1] if rng.random() < 0.5 else image).astype(numpy.float32) / 255, label


class Images:
    """A source of samples: (image, label) by number."""

    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, number):
        return self.images[number], self.labels[number]


def batches(images, labels, batch, workers):
    return augmented(Images(images, labels), Augment(), batch, workers)


def augmented(source, transform, batch, workers):
    samples = grain.MapDataset.source(source).seed(0).shuffle().random_map(transform)
    options = grain.ReadOptions(num_threads=workers, prefetch_buffer_size=2 * batch)
    return map(jax.device_put, samples.to_iter_dataset(options).batch(batch, drop_remainder=True))
