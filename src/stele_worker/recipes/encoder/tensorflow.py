"""BERT-shaped encoder in TensorFlow: one tf.function per step, compiled by XLA."""

import tensorflow as tf

from stele_worker.attention.tensorflow import (
    adam_step,
    cross_entropy,
    dropout,
    feed_forward,
    linear,
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


def network(task):
    return {}  # variables by name: predict computes the layers from them


def layer(net, name, x, task, mask, random):
    y = self_attention(net, name + ".attention", x, task, mask)
    x = norm(net, name + ".norm1", x + dropout(y, task, random), task)
    y = feed_forward(net, name, x, tf.nn.gelu)
    return norm(net, name + ".norm2", x + dropout(y, task, random), task)


def predict(net, task, tokens, segments, random=None):
    x = tf.gather(net["tokens.weight"], tokens) + tf.gather(net["segments.weight"], segments)
    x = norm(net, "norm", x + net["positions.weight"][: tokens.shape[1]], task)  # (batch, length, hidden)
    x = dropout(tf.cast(x, task.dtype), task, random)
    mask = (tokens != 0)[:, None, None]  # (batch, heads, queries, keys)
    for number in range(task.layers):
        x = layer(net, "layer.{}".format(number), x, task, mask, random)
    x = tf.tanh(linear(net, "pooler", x[:, 0]))  # (batch, hidden)
    return tf.cast(linear(net, "classifier", dropout(x, task, random)), tf.float32)  # (batch, classes)


def loss(net, task):
    random = make_random(task)
    return lambda tokens, segments, y: cross_entropy(predict(net, task, tokens, segments, random), y)


def training_step(net, task):
    return adam_step(net, task, loss(net, task))


def stored(net):
    return net


def activations(net, task):
    return outputs(globals(), ("layer",), lambda *inputs: predict(net, task, *inputs))
