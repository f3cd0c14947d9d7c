"""Layers with attention in NumPy. Each returns (value, backward); backward(g, d) adds the gradients of parameters to d.

Source: see the Tasks ``transformer``, ``encoder`` and ``decoder``.
"""

import numpy

from stele_suite.oracle import attention, dense, dropout, embedding, layer_norm


def linear(net, name, x):
    names = name + ".weight", name + ".bias"
    value, dense_backward = dense(x, net[names[0]], net[names[1]])

    def backward(g, d):
        g, *parts = dense_backward(g)
        d.add(names, parts)
        return g

    return value, backward


def norm(net, name, x, task):
    names = name + ".weight", name + ".bias"
    value, norm_backward = layer_norm(x, net[names[0]], net[names[1]], task.norm_epsilon)

    def backward(g, d):
        g, *parts = norm_backward(g)
        d.add(names, parts)
        return g

    return value, backward


def embed(net, name, tokens):
    """Return the rows of an embedding. Its backward returns nothing."""
    value, embedding_backward = embedding(tokens, net[name])
    return value, lambda g, d: d.add([name], [embedding_backward(g)])


def project(net, name, x):
    """Return x (batch, length, hidden) times an embedding (token, hidden): logits (batch, length, token)."""

    def backward(g, d):
        d.add([name], [numpy.tensordot(g, x, ((0, 1), (0, 1)))])
        return g.dot(net[name])

    return x.dot(net[name].T), backward


def self_attention(net, name, x, task, mask=None):
    x, project_in = linear(net, name + ".qkv", x)
    x, attend = attention(*numpy.split(x, 3, axis=2), heads=task.heads, mask=mask)
    x, project_out = linear(net, name + ".out", x)

    def backward(g, d):
        parts = attend(project_out(g, d))
        return project_in(numpy.concatenate(parts, axis=2), d)

    return x, backward


def cross_attention(net, name, x, memory, task):
    """Attend to ``memory``. Its gradient is added to d under the name "memory"."""
    query, project_query = linear(net, name + ".query", x)
    kv, project_kv = linear(net, name + ".kv", memory)
    x, attend = attention(query, *numpy.split(kv, 2, axis=2), heads=task.heads)
    x, project_out = linear(net, name + ".out", x)

    def backward(g, d):
        d_query, *d_kv = attend(project_out(g, d))
        d.add(["memory"], [project_kv(numpy.concatenate(d_kv, axis=2), d)])
        return project_query(d_query, d)

    return x, backward


def feed_forward(net, name, x, activation):
    x, expand = linear(net, name + ".dense1", x)
    x, activate = activation(x)
    x, contract = linear(net, name + ".dense2", x)
    return x, lambda g, d: expand(activate(contract(g, d)), d)


def dropped(x, task, random):
    value, drop = dropout(x, task.dropout[0], random)
    return value, lambda g, d: drop(g)


def post_norm(net, name, x, sublayer, task, random):
    """Return the norm ``name`` of x plus a sublayer of x."""
    value, apply = sublayer(x)
    value, drop = dropped(value, task, random)
    value, normalise = norm(net, name, x + value, task)

    def backward(g, d):
        g = normalise(g, d)
        return g + apply(drop(g, d), d)

    return value, backward


def pre_norm(net, name, x, sublayer, task, random):
    """Return x plus a sublayer of the norm ``name`` of x."""
    value, normalise = norm(net, name, x, task)
    value, apply = sublayer(value)
    value, drop = dropped(value, task, random)
    return x + value, lambda g, d: g + normalise(apply(drop(g, d), d), d)


def layer(net, name, x, task, random, *, residual, activation, mask=None):
    """Return a layer of self-attention and two dense layers; ``residual`` is ``pre_norm`` or ``post_norm``."""
    x, first = residual(
        net,
        name + ".norm1",
        x,
        lambda x: self_attention(net, name + ".attention", x, task, mask),
        task,
        random,
    )
    x, second = residual(net, name + ".norm2", x, lambda x: feed_forward(net, name, x, activation), task, random)
    return x, lambda g, d: first(second(g, d), d)


def causal(length):
    """Return the mask (length, length) of positions that attend to themselves and those before."""
    return numpy.tril(numpy.ones((length, length), bool))
