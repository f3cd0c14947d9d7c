"""What is computed, framework-free: sizes, hyper-parameters, seeded weights and batch order, in numpy.

A Task is an immutable value; its module knows three more things: ``SCALES``, ``weights(seed)`` and
``inputs(raw)``. Random numbers come from ``numpy.random.RandomState``, whose stream is frozen, so that
every interpreter from Python 3.6 on makes the same arrays, bit for bit.
"""

import importlib
from collections import OrderedDict

import numpy

NAMES = ("cnn", "resnet50", "gru")
SCALES = ("smoke", "quick", "paper")
LACKING = {"one-bias": ("gru.hidden_bias",)}  # parameters that another form of a Task does not have


def load(name):
    return importlib.import_module(__name__ + "." + name)


def make(name, scale, **changes):
    """The Task ``name`` at ``scale``, with fields such as ``seed`` or ``dtype`` changed."""
    module = load(name)
    return module.Task(**module.SCALES[scale])._replace(**changes)


def weights(task):
    """The seeded weights of a Task in its form: named float32 arrays."""
    arrays = load(task.name).weights(task.seed)
    lacking = LACKING.get(getattr(task, "form", None), ())
    return OrderedDict((name, array) for name, array in arrays.items() if name not in lacking)


def forms(name):
    """The other forms in which a Task may be computed, where a framework lacks its own."""
    return getattr(load(name), "FORMS", ())


def subset(size, total):
    """Which ``size`` of ``total`` samples a scale uses: the same for every seed."""
    return numpy.random.RandomState(0).permutation(total)[:size]


def batch_order(task, epoch):
    """Rows of the training set for each step of an epoch: int64 of shape (steps, batch).

    Each epoch has its own permutation; the rows left over after the last whole batch are dropped.
    """
    steps = task.train // task.batch
    order = numpy.random.RandomState([task.seed, epoch]).permutation(task.train)
    return order[: steps * task.batch].reshape(steps, task.batch)


def without_dropout(task):
    """The Task as parity compares it: no two frameworks draw the same masks."""
    return task._replace(dropout=tuple(0.0 for _ in task.dropout))
