"""Seeded float32 arrays, drawn in float64 and rounded once."""

import numpy


def uniform(rng, limit, shape):
    """Draw from U(-limit, +limit)."""
    return rng.uniform(-limit, limit, shape).astype(numpy.float32)


def glorot_uniform(rng, shape):
    """Draw from U(+-sqrt(6 / (fan_in + fan_out))), for (out, in) or (out, in, height, width).

    Source: Glorot and Bengio, 2010.
    """
    window = int(numpy.prod(shape[2:]))
    return uniform(rng, (6.0 / ((shape[0] + shape[1]) * window)) ** 0.5, shape)


def he_normal(rng, shape, groups=1, inputs=False):
    """Draw from N(0, 2 / fan_out) for (out, in / groups, height, width), as torchvision does for its ResNets.

    With ``inputs``, draw from N(0, 2 / fan_in), as it does for its DenseNets. Source: He et al., 2015.
    """
    channels = shape[1] if inputs else shape[0] // groups
    deviation = (2.0 / (channels * int(numpy.prod(shape[2:])))) ** 0.5
    return (rng.standard_normal(shape) * deviation).astype(numpy.float32)


def zeros(shape):
    return numpy.zeros(shape, numpy.float32)
