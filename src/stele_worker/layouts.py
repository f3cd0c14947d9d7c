"""Layouts of arrays, as the order in which they have the numbers of another array."""

import numpy


def restore(order, array, shape):
    """Return the array of shape ``shape`` of which ``array`` has the numbers in another order.

    ``order`` has for each number of ``array`` its position in the result; so it is the same reordering of positions.
    """
    result = numpy.empty(array.size, array.dtype)
    result[order.reshape(-1)] = array.reshape(-1)
    return result.reshape(shape)
