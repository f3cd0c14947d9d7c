"""GPT-2 in TensorFlow: one tf.function per step, compiled by XLA."""

from functools import partial

import tensorflow as tf

from stele_worker.attention.tensorflow import (
    adam_step,
    causal,
    cross_entropy,
    dropout,
    feed_forward,
    load,
    neutral,
    norm,
    self_attention,
    trainable,
)
from stele_worker.frameworks.tensorflow import make_random
from stele_worker.layers import outputs

__all__ = ["LAYOUT", "load", "neutral", "trainable"]

LAYOUT = None
XLA = ("train", "infer")  # it fuses the softmax, the normalisations and the activations
gelu = partial(tf.nn.gelu, approximate=True)


def network(task):
    return {}  # variables by name: hidden computes the layers from them


def layer(net, name, x, task, mask, random):
    y = self_attention(net, name + ".attention", norm(net, name + ".norm1", x, task), task, mask)
    x = x + dropout(y, task, random)
    y = feed_forward(net, name, norm(net, name + ".norm2", x, task), gelu)
    return x + dropout(y, task, random)


def hidden(net, task, tokens, random=None):
    x = tf.gather(net["tokens.weight"], tokens) + net["positions.weight"][: tokens.shape[1]]
    x = dropout(tf.cast(x, task.dtype), task, random)  # (batch, length, hidden)
    mask = causal(tokens.shape[1])
    for number in range(task.layers):
        x = layer(net, "layer.{}".format(number), x, task, mask, random)
    return norm(net, "norm", x, task)


def project(net, x):
    kernel = tf.cast(net["tokens.weight"], x.dtype)
    return tf.cast(tf.linalg.matmul(x, kernel, transpose_b=True), tf.float32)  # (..., vocabulary)


def predict(net, task, tokens):
    return project(net, hidden(net, task, tokens)[:, -1])


def loss(net, task):
    random = make_random(task)
    return lambda tokens, y: cross_entropy(project(net, hidden(net, task, tokens, random)), y)


def training_step(net, task):
    return adam_step(net, task, loss(net, task))


def stored(net):
    return net


def activations(net, task):
    return outputs(globals(), ("layer",), lambda tokens: predict(net, task, tokens))
