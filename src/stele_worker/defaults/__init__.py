"""What a framework does when nothing is passed: one module a framework, with ``table() -> {fact: word or number}``.

Asked before anything is set. Facts go by the same names in every module, so that two releases, and two frameworks, can
be compared line by line; one that a framework does not have is left out.
"""

import importlib
import os

import numpy


def table(framework):
    try:
        module = importlib.import_module("{}.{}".format(__name__, framework))
    except ImportError as error:
        if framework in str(error):
            raise NotImplementedError("nobody has asked {} yet".format(framework)) from None
        raise
    return {fact: plain(value) for fact, value in module.table().items()}


def plain(value):
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


def drawn(array, fan_in):
    """How initial weights are distributed, with the deviation as a multiple of 1 / sqrt(fan in): of many numbers."""
    array = numpy.asarray(array, numpy.float64)
    deviation = array.std()
    if deviation == 0:
        return "constant {:g}".format(array.flat[0])
    reach = abs(array - array.mean()).max() / deviation
    if is_orthogonal(array):
        return "orthogonal"
    kind = "uniform" if reach < 1.8 else "truncated normal" if reach < 2.6 else "normal"
    return "{}, deviation {:.2g} / sqrt(fan in)".format(kind, deviation * fan_in**0.5)


def is_orthogonal(array):
    """Whether rows or columns are orthonormal."""
    if array.ndim != 2:
        return False
    short = array if array.shape[0] <= array.shape[1] else array.T
    return bool(abs(short.dot(short.T) - numpy.eye(len(short))).max() < 1e-3)


def share(threads):
    """A number of threads as it compares with the processors that the process may use."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return "all processors" if threads == processors else "{}".format(threads)
