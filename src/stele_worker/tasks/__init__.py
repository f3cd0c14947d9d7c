"""The Tasks, independent of any framework: sizes, hyper-parameters, seeded weights and batch order, in numpy.

A Task is an immutable value. Its module also has ``SCALES``, ``weights(seed)``, ``inputs(raw)`` and
``example(batch, seed)``. Random numbers come from ``numpy.random.RandomState``, whose stream is frozen, so that every
Python from 3.6 on makes the same arrays, bit for bit.
"""

import importlib
from collections import OrderedDict

import numpy

NAMES = ("cnn", "resnet50", "gru")
SCALES = ("smoke", "quick", "paper")
MISSING = {"one-bias": ("gru.hidden_bias",)}  # form -> parameters that a Task in this form does not have


def load(name):
    return importlib.import_module(__name__ + "." + name)


def make(name, scale, **changes):
    """Return the Task ``name`` at ``scale``, with ``changes`` of fields such as ``seed`` or ``dtype``."""
    module = load(name)
    return module.Task(**module.SCALES[scale])._replace(**changes)


def weights(task):
    """Return the seeded weights of a Task in its form: named float32 arrays."""
    arrays = load(task.name).weights(task.seed)
    missing = MISSING.get(getattr(task, "form", None), ())
    return OrderedDict((name, array) for name, array in arrays.items() if name not in missing)


def unit(name):
    """Return what the samples of a Task are called; those of a user's task or model are samples."""
    return load(name).UNIT if name in NAMES else "samples"


def forms(name):
    """Return the variants of a Task, for frameworks that lack the Task's own form."""
    return getattr(load(name), "FORMS", ())


def subset(size, total):
    """Return the rows of the ``size`` of ``total`` samples that a scale uses, the same for every seed."""
    return numpy.random.RandomState(0).permutation(total)[:size]


def batch_order(task, epoch):
    """Return the rows of the training set for each step of an epoch: int64 of shape (steps, batch).

    Each epoch has a different permutation. Rows that do not fill a batch are dropped.
    """
    steps = task.train // task.batch
    order = numpy.random.RandomState([task.seed, epoch]).permutation(task.train)
    return order[: steps * task.batch].reshape(steps, task.batch)


def without_dropout(task):
    """Return the Task with all dropout rates 0, for parity: no two frameworks draw the same masks."""
    return task._replace(dropout=tuple(0.0 for _ in task.dropout))
