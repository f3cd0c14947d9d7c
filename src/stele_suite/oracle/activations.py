"""Operations on each number by itself. See ``stele_suite.oracle``."""

import math

import numpy


def relu(x):
    return numpy.maximum(x, 0), lambda g: g * (x > 0)


def relu6(x):
    return numpy.clip(x, 0, 6), lambda g: g * ((x > 0) & (x < 6))


def celu(x, alpha):
    """Continue a ReLU below 0 by an exponential that reaches -alpha. Source: Barron, 2017."""
    below = numpy.exp(numpy.minimum(x, 0) / alpha)
    return numpy.where(x > 0, x, alpha * (below - 1)), lambda g: g * numpy.where(x > 0, 1, below)


def tanh(x):
    value = numpy.tanh(x)
    return value, lambda g: g * (1 - value * value)


def gelu(x):
    """Multiply x by the normal distribution function. Source: Hendrycks and Gimpel, 2016."""
    below = 0.5 * (1 + error_function(x / math.sqrt(2)))
    density = numpy.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return x * below, lambda g: g * (below + x * density)


error_function = numpy.vectorize(math.erf, otypes=[float])  # NumPy has none


def gelu_tanh(x):
    """Approximate ``gelu`` by tanh, as GPT-2 does."""
    factor = math.sqrt(2 / math.pi)
    value = numpy.tanh(factor * (x + 0.044715 * x**3))
    inner = factor * (1 + 3 * 0.044715 * x * x)
    return 0.5 * x * (1 + value), lambda g: 0.5 * g * (1 + value + x * (1 - value * value) * inner)


def dropout(x, rate, random):
    """Apply inverted dropout; return x unchanged if ``random`` is None, as in inference."""
    if random is None or rate == 0:
        return x, lambda g: g
    mask = (random.uniform(size=x.shape) >= rate) / (1 - rate)
    return x * mask, lambda g: g * mask
