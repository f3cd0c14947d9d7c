"""What the Tasks on CIFAR-10 that are trained to an accuracy share."""

import numpy

OPEN = ("torch", "jax", "tensorflow", "keras", "paddle")  # frameworks with an open division


def example(task, samples):
    """Return noise: images float32 (samples, 32, 32, 3), labels int32 (samples,)."""
    rng = numpy.random.RandomState(task.seed)
    images = rng.standard_normal((samples, 32, 32, 3)).astype(numpy.float32)
    return images, rng.randint(0, 10, samples).astype(numpy.int32)
