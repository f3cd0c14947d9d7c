"""The images that both sides train with."""

import numpy

from stele_suite import tasks


def arrays_of(paths, count):
    """Return {"train" or "test": (images uint8 (n, 32, 32, 3), labels)}, those that the recipe takes, in its order.

    ``count`` limits the training images; None: all.
    """
    counts = {"train": count, "test": count and tests_for(count)}
    return {split: arrays_of_split(paths, split, limit) for split, limit in counts.items()}


def arrays_of_split(paths, split, count):
    x, y = (numpy.load(paths[f"{split}_{part}"]) for part in ("x", "y"))
    rows = tasks.subset(count or len(x), len(x))
    return x[rows], y[rows]


def sizes(count):
    """Return changes of a Task that trains with ``count`` images; {} for all."""
    return {"train": count, "test": tests_for(count)} if count else {}


def tests_for(count):
    return count // 80 * 16  # cifar10-fast divides each batch into 16 ghost batches
