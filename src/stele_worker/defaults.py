"""The defaults of a framework. ``defaults.py`` of a framework has ``table() -> {fact: text or number}``.

The table is read before any setting is changed. Every module uses the same names for facts, so that two releases or
two frameworks can be compared line by line. A fact that does not apply to a framework is omitted.
"""

import os

import numpy

from stele_worker import frameworks


def table(framework):
    """Return the defaults of ``framework``. Raises NotImplementedError if there is no module for it."""
    module = frameworks.part(framework, "defaults")
    if module is None:
        raise NotImplementedError("no table of defaults is implemented for {} yet".format(framework))
    return {fact: plain(value) for fact, value in module.table().items()}


def plain(value):
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


def distribution(array, fan_in):
    """Describe the distribution of initial weights. The deviation is given as a multiple of 1 / sqrt(fan in)."""
    array = numpy.asarray(array, numpy.float64)
    deviation = array.std()
    if deviation == 0:
        return "constant {:g}".format(array.flat[0])
    extent = abs(array - array.mean()).max() / deviation
    if is_orthogonal(array):
        return "orthogonal"
    kind = "uniform" if extent < 1.8 else "truncated normal" if extent < 2.6 else "normal"
    return "{}, deviation {:.2g} / sqrt(fan in)".format(kind, deviation * fan_in**0.5)


def is_orthogonal(array):
    """Return whether the rows or the columns are orthonormal."""
    if array.ndim != 2:
        return False
    wide = array if array.shape[0] <= array.shape[1] else array.T
    return bool(abs(wide.dot(wide.T) - numpy.eye(len(wide))).max() < 1e-3)


def describe_threads(threads):
    """Return "all processors" if there are as many threads as processors for this process, else their number."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return "all processors" if threads == processors else "{}".format(threads)
