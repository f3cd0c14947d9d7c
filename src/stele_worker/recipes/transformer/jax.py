"""Transformer in JAX: one jitted step, weights and optimiser state donated."""

import jax.numpy as jnp
from jax.nn import relu

from stele_worker.attention.jax import (
    adam_step,
    cross_attention,
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
from stele_worker.tasks.transformer import positions

__all__ = ["LAYOUT", "load", "neutral", "parts"]

LAYOUT = None


def network(task):
    return {}  # weights by name: hidden computes the layers from them


def embed(net, task, tokens, keys):
    x = task.hidden**0.5 * net["embedding.weight"][tokens] + positions(task)  # (batch, length, hidden)
    return dropout(x.astype(task.dtype), task, keys)


def encoder_layer(net, name, x, task, keys):
    y, _ = self_attention(net, name + ".attention", x, task)
    x = norm(net, name + ".norm1", x + dropout(y, task, keys), task)
    y = feed_forward(net, name, x, relu)
    return norm(net, name + ".norm2", x + dropout(y, task, keys), task)


def decoder_layer(net, name, x, memory, task, keys):
    y, _ = self_attention(net, name + ".attention", x, task, causal=True)
    x = norm(net, name + ".norm1", x + dropout(y, task, keys), task)
    y = cross_attention(net, name + ".cross", x, memory, task)
    x = norm(net, name + ".cross.norm", x + dropout(y, task, keys), task)
    y = feed_forward(net, name, x, relu)
    return norm(net, name + ".norm2", x + dropout(y, task, keys), task)


def hidden(net, task, source, prefix, keys=None):
    memory = embed(net, task, source, keys)
    for number in range(task.layers):
        memory = encoder_layer(net, "encoder.{}".format(number), memory, task, keys)
    x = embed(net, task, prefix, keys)
    for number in range(task.layers):
        x = decoder_layer(net, "decoder.{}".format(number), x, memory, task, keys)
    return x


def project(net, x):
    return (x @ net["embedding.weight"].T.astype(x.dtype)).astype(jnp.float32)  # (..., vocabulary)


def predict(net, task, source, prefix):
    return project(net, hidden(net, task, source, prefix)[:, -1])


def loss(net, task):
    def compute(weights, key, source, prefix, y):
        key, keys = make_keys(key, 2 + 5 * task.layers)
        logits = project(weights, hidden(weights, task, source, prefix, keys))
        return cross_entropy(logits, y, task.smoothing), key

    return compute


def training_step(net, task):
    return adam_step(net, task, loss(net, task))


def stored(net):
    return net


def activations(net, task):
    return outputs(globals(), ("encoder_layer", "decoder_layer"), lambda *inputs: predict(net, task, *inputs))
