"""Networks of the NumPy recipes: {parameter: float64 array}, and the gradients of their parameters."""

import numpy


def zero_parameters(shapes):
    """Return a network of these recipes, {parameter: float64 array}, filled with zeros."""
    return {name: numpy.zeros(shape) for name, shape in shapes.items()}


def shapes_of(arrays):
    return {name: array.shape for name, array in arrays.items()}


def load_weights(net, weights):
    """Return the network with copies of ``weights``. Raises ValueError if names or shapes do not match."""
    expected, actual = shapes_of(net), shapes_of(weights)
    if expected != actual:
        wrong = sorted(name for name in set(expected) | set(actual) if expected.get(name) != actual.get(name))
        raise ValueError("weights missing, unknown or different in shape from the Task's: " + ", ".join(wrong))
    net.update((name, numpy.array(array, numpy.float64)) for name, array in weights.items())
    return net


class Gradients(dict):
    """{parameter: gradient}. A parameter that a network uses in several places gets the sum."""

    def add(self, names, values):
        for name, value in zip(names, values):
            self[name] = self[name] + value if name in self else value
