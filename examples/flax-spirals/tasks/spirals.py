"""Classify points in the plane by the spiral that they belong to. The points are generated here."""

import numpy

BATCH = 64
LEARNING_RATE = 0.2
SPIRALS, TURNS, NOISE = 3, 1.0, 0.04
SIZES = {"train": 32768, "test": 8192}


def samples(part):
    """Return points of shape (n, 2) and for each the number of its spiral."""
    rng = numpy.random.RandomState(1 if part == "train" else 2)
    label = rng.randint(0, SPIRALS, SIZES[part])
    radius = rng.uniform(0.1, 1, len(label))
    angle = 2 * numpy.pi * (label / SPIRALS + TURNS * radius)
    points = radius[:, None] * numpy.stack([numpy.cos(angle), numpy.sin(angle)], axis=1)
    return points + rng.normal(0, NOISE, points.shape), label


def correct(output, target):
    """Return how many points of a batch are assigned to the right spiral."""
    return (output.argmax(1) == target).sum()
