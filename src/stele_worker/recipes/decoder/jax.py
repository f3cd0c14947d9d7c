"""GPT-2 in JAX: one jitted step, weights and optimiser state donated."""

import jax.numpy as jnp
from jax.nn import gelu

from stele_worker.attention.jax import (
    adam_step,
    cross_entropy,
    dropout,
    feed_forward,
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
    return {}  # weights by name: hidden computes the layers from them


def layer(net, name, x, task, keys):
    y, _ = self_attention(net, name + ".attention", norm(net, name + ".norm1", x, task), task, causal=True)
    x = x + dropout(y, task, keys)
    y = feed_forward(net, name, norm(net, name + ".norm2", x, task), gelu)
    return x + dropout(y, task, keys)


def hidden(net, task, tokens, keys=None):
    x = net["tokens.weight"][tokens] + net["positions.weight"][: tokens.shape[1]]  # (batch, length, hidden)
    x = dropout(x.astype(task.dtype), task, keys)
    for number in range(task.layers):
        x = layer(net, "layer.{}".format(number), x, task, keys)
    return norm(net, "norm", x, task)


def project(net, x):
    return (x @ net["tokens.weight"].T.astype(x.dtype)).astype(jnp.float32)  # (..., vocabulary)


def predict(net, task, tokens):
    return project(net, hidden(net, task, tokens)[:, -1])


def loss(net, task):
    def compute(weights, key, tokens, y):
        key, keys = make_keys(key, 1 + 2 * task.layers)
        return cross_entropy(project(weights, hidden(weights, task, tokens, keys)), y), key

    return compute


def training_step(net, task):
    return adam_step(net, task, loss(net, task))


def stored(net):
    return net


def activations(net, task):
    return outputs(globals(), ("layer",), lambda tokens: predict(net, task, tokens))
