"""Dense layers, embeddings and attention. See ``stele_suite.oracle``."""

import numpy


def dense(x, weight, bias):
    """Map x (..., in) to (..., out)."""
    leading = tuple(range(x.ndim - 1))

    def backward(g):
        return numpy.tensordot(g, weight, 1), numpy.tensordot(g, x, (leading, leading)), g.sum(leading)

    return numpy.tensordot(x, weight.T, 1) + bias, backward


def embedding(tokens, weight):
    """Return the rows of weight for ``tokens``; backward returns only the gradient of the weight."""

    def backward(g):
        gradient = numpy.zeros_like(weight)
        numpy.add.at(gradient, tokens, g)
        return gradient

    return weight[tokens], backward


def layer_norm(x, scale, shift, epsilon):
    """Normalise the last axis by its mean and biased variance. Source: Ba et al., 2016."""
    centred = x - x.mean(-1, keepdims=True)
    deviation = numpy.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
    normalised = centred / deviation
    leading = tuple(range(x.ndim - 1))

    def backward(g):
        scaled = g * scale
        common = scaled.mean(-1, keepdims=True) + normalised * (scaled * normalised).mean(-1, keepdims=True)
        return (scaled - common) / deviation, (g * normalised).sum(leading), g.sum(leading)

    return normalised * scale + shift, backward


def attention(query, key, value, *, heads, mask=None):
    """Return scaled dot-product attention with several heads: (batch, length, hidden), as ``query`` has it.

    ``mask`` is true where a position of the query attends to one of the keys; it is broadcast to
    (batch, heads, length of the query, length of the keys). Source: Vaswani et al., 2017.
    """
    query, key, value = [split_heads(array, heads) for array in (query, key, value)]
    scale = query.shape[-1] ** -0.5
    scores = numpy.matmul(query, key.swapaxes(2, 3)) * scale
    if mask is not None:
        scores = numpy.where(mask, scores, -numpy.inf)
    weights = numpy.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)

    def backward(g):
        g = split_heads(g, heads)
        d_weights = numpy.matmul(g, value.swapaxes(2, 3))
        d_scores = scale * weights * (d_weights - (d_weights * weights).sum(-1, keepdims=True))
        d_query, d_key = numpy.matmul(d_scores, key), numpy.matmul(d_scores.swapaxes(2, 3), query)
        d_value = numpy.matmul(weights.swapaxes(2, 3), g)
        return merge_heads(d_query), merge_heads(d_key), merge_heads(d_value)

    return merge_heads(numpy.matmul(weights, value)), backward


def split_heads(x, heads):
    """Return (batch, length, hidden) as (batch, heads, length, hidden / heads)."""
    batch, length, hidden = x.shape
    return x.reshape(batch, length, heads, hidden // heads).transpose(0, 2, 1, 3)


def merge_heads(x):
    batch, heads, length, size = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, heads * size)
