"""CIFAR-10 with augmentation, through the loader of each framework, as its documentation recommends.

batches(images, labels, batch, workers)
    Return an iterator over one epoch in random order: float32 images of the recipe's layout, from 0 to 1, and labels,
    both on the device. ``images`` are uint8 (n, 32, 32, 3) in memory, and ``labels`` int32 (n,). An image is padded by
    4 pixels of zeros, cropped at random to 32 x 32, and flipped with a probability of one half. ``workers`` is the
    number of processes or threads that the loader may use beside its caller.
"""

import itertools
from time import perf_counter

import numpy

from stele_suite import tasks
from stele_worker import frameworks, process

WARMUP = 5  # batches, in which a loader may be ahead


def find(framework):
    """Return the loader of a framework; None if it has none. Raises RuntimeError if a package of it is missing."""
    try:
        return frameworks.part(framework, "loader")
    except ModuleNotFoundError as error:
        message = "The loader of {} needs the package {}. Install it into this environment"
        raise RuntimeError(message.format(framework, error.name)) from error


def measure(step, batches, task, data, count):
    """Return the mean seconds of ``count`` batches of the loader "alone", and of steps that it feeds, "fed".

    None if the Task or the framework has no loader. The loader has as many workers as this process has processors. It
    works ahead of its caller, so nothing else runs meanwhile.
    """
    framework = batches.framework
    loader = find(framework.name) if task.name in tasks.LOADED else None
    if loader is None:
        return None
    samples = slice((WARMUP + count) * task.batch)
    images, labels = (numpy.load(data["train_" + axis], mmap_mode="r")[samples] for axis in "xy")
    images, labels = numpy.array(images), numpy.array(labels, numpy.int32)
    workers = len(process.processors() or [0])
    uses = {"alone": framework.wait, "fed": lambda batch: framework.wait(step(*batch))}
    seconds = {}
    for _ in batches.in_turns([None]):
        for name, use in uses.items():
            loaded = loader.batches(images, labels, task.batch, workers)
            seconds[name], _ = time_batches(loaded, use)
    return seconds


def time_batches(batches, use):
    """Use each batch. Return the mean seconds of one after the warm-up, and the last batch."""
    for batch in itertools.islice(batches, WARMUP):
        use(batch)
    began, ends = perf_counter(), []
    for batch in batches:
        use(batch)
        ends.append(perf_counter())  # without the end of the loader, which may take a second
    return (ends[-1] - began) / len(ends), batch
