"""Grain, the loader that JAX recommends, whose workers are threads; the batches are copied to the device."""

import grain
import numpy
from PIL import Image

from stele_worker.frameworks.jax.loader import Images, augmented


class Crop(grain.transforms.RandomMap):
    def __init__(self, size):
        self.size = size

    def random_map(self, sample, rng):
        image, label = sample
        top, left = rng.integers(len(image) - self.size + 1, size=2)
        image = image[top : top + self.size, left : left + self.size]
        return (image[:, ::-1] if rng.random() < 0.5 else image).astype(numpy.float32) / 255, label


class Files(Images):
    """A source of samples whose images are paths of files."""

    def __getitem__(self, number):
        with Image.open(self.images[number]) as file:
            return numpy.asarray(file.convert("RGB")), self.labels[number]


def file_batches(paths, labels, size, batch, workers):
    return augmented(Files(paths, labels), Crop(size), batch, workers)
