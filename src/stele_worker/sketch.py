"""Sketches: an array summarised in three numbers, so that two arrays can be compared without transferring them.

[norm, sum of a[i] cos(i), sum of a[i] cos(2 i)], where i counts the numbers from 0 in C order. The norm does not
depend on the order of the numbers; the two sums do. Sums are in float64. A language without numpy needs one line.
"""

import numpy

cosine_cache = {}  # k -> cos(k i), as long as the longest array so far; the cosines take the most time


def sketch(array):
    """Return the sketch of an array of any shape: a list of three floats."""
    values = numpy.ravel(numpy.asarray(array, numpy.float64))
    return [float(numpy.sqrt(values.dot(values)))] + [float(values.dot(cosines(k, values.size))) for k in (1, 2)]


def cosines(k, size):
    if k not in cosine_cache or cosine_cache[k].size < size:
        cosine_cache[k] = numpy.cos(k * numpy.arange(size))
    return cosine_cache[k][:size]
