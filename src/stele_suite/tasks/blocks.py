"""Seeded weights of what the Tasks with attention share: dense layers, layer normalisation and attention."""

from stele_suite.tasks.initialisers import glorot_uniform, uniform


def dense(rng, name, outputs, inputs, limit=None):
    """Return {name.weight: (out, in), name.bias: (out,)}. Biases differ from 0, so that a missing one is noticed.

    Weights are drawn from U(-limit, +limit); default: that of Glorot and Bengio.
    """
    shape = (outputs, inputs)
    return {
        name + ".weight": glorot_uniform(rng, shape) if limit is None else uniform(rng, limit, shape),
        name + ".bias": uniform(rng, 0.02, (outputs,)),
    }


def norm(rng, name, hidden):
    """Return {name.weight: (hidden,) near 1, name.bias: (hidden,) near 0}."""
    return {name + ".weight": 1 + uniform(rng, 0.1, (hidden,)), name + ".bias": uniform(rng, 0.1, (hidden,))}


def self_attention(rng, name, hidden):
    """Return the weights of self-attention: query, key and value in one dense layer, in this order, and the output."""
    return dict(dense(rng, name + ".qkv", 3 * hidden, hidden), **dense(rng, name + ".out", hidden, hidden))


def cross_attention(rng, name, hidden):
    """Return the weights of attention to other positions: the query, key and value in one layer, and the output."""
    arrays = dense(rng, name + ".query", hidden, hidden)
    arrays.update(dense(rng, name + ".kv", 2 * hidden, hidden))
    arrays.update(dense(rng, name + ".out", hidden, hidden))
    return arrays


def feed_forward(rng, name, hidden, inner):
    """Return the weights of two dense layers, ``name``.dense1 and ``name``.dense2."""
    arrays = dense(rng, name + ".dense1", inner, hidden)
    arrays.update(dense(rng, name + ".dense2", hidden, inner))
    return arrays


def layer(rng, name, task):
    """Return the weights of a layer: self-attention, a norm, two dense layers and another norm."""
    arrays = self_attention(rng, name + ".attention", task.hidden)
    arrays.update(norm(rng, name + ".norm1", task.hidden))
    arrays.update(feed_forward(rng, name, task.hidden, task.inner))
    arrays.update(norm(rng, name + ".norm2", task.hidden))
    return arrays
