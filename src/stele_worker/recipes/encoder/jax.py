"""BERT-shaped encoder in JAX: one jitted step, weights and optimiser state donated."""

from functools import partial

import jax.numpy as jnp
from jax.nn import gelu

from stele_worker.attention.jax import (
    adam_step,
    cross_entropy,
    dropout,
    feed_forward,
    linear,
    load,
    make_keys,
    neutral,
    norm,
    parts,
    self_attention,
)
from stele_worker.layers import outputs

__all__ = ["LAYOUT", "load", "neutral", "parts"]

LAYOUT = None


def network(task):
    return {}  # weights by name: predict computes the layers from them


def layer(net, name, x, task, mask, keys):
    y, _ = self_attention(net, name + ".attention", x, task, mask)
    x = norm(net, name + ".norm1", x + dropout(y, task, keys), task)
    y = feed_forward(net, name, x, partial(gelu, approximate=False))
    return norm(net, name + ".norm2", x + dropout(y, task, keys), task)


def predict(net, task, tokens, segments, keys=None):
    x = net["tokens.weight"][tokens] + net["segments.weight"][segments]  # (batch, length, hidden)
    x = norm(net, "norm", x + net["positions.weight"][: tokens.shape[1]], task)
    x = dropout(x.astype(task.dtype), task, keys)
    mask = (tokens != 0)[:, None, None]  # (batch, heads, queries, keys)
    for number in range(task.layers):
        x = layer(net, "layer.{}".format(number), x, task, mask, keys)
    x = jnp.tanh(linear(net, "pooler", x[:, 0]))  # (batch, hidden)
    return linear(net, "classifier", dropout(x, task, keys)).astype(jnp.float32)  # (batch, classes)


def loss(net, task):
    def compute(weights, key, tokens, segments, y):
        key, keys = make_keys(key, 2 + 2 * task.layers)
        return cross_entropy(predict(weights, task, tokens, segments, keys), y), key

    return compute


def training_step(net, task):
    return adam_step(net, task, loss(net, task))


def stored(net):
    return net


def activations(net, task):
    return outputs(globals(), ("layer",), lambda *inputs: predict(net, task, *inputs))
