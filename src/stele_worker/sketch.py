"""An array in three numbers, which tell two arrays apart without either having to travel.

[norm, sum of a[i] cos(i), sum of a[i] cos(2 i)]: i counts the numbers from 0 as C lays them out. The norm does not
see an order, the other two do. Sums are in float64; a language without numpy computes the same in a line.
"""

import numpy

waves = {}  # k -> cos(k i), as long as the longest array so far: what takes longest is made once


def sketch(array):
    """Of an array of any shape: a list of three floats."""
    values = numpy.ravel(numpy.asarray(array, numpy.float64))
    return [float(numpy.sqrt(values.dot(values)))] + [float(values.dot(wave(k, values.size))) for k in (1, 2)]


def wave(k, size):
    if k not in waves or waves[k].size < size:
        waves[k] = numpy.cos(k * numpy.arange(size))
    return waves[k][:size]
