"""Transformer in TensorFlow: one tf.function per step, compiled by XLA."""

import tensorflow as tf

from stele_worker.attention.tensorflow import (
    adam_step,
    causal,
    cross_attention,
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
from stele_worker.tasks.transformer import positions

__all__ = ["LAYOUT", "load", "neutral", "trainable"]

LAYOUT = None
XLA = ("train", "infer")  # it fuses the softmax, the normalisations and the activations


def network(task):
    return {}  # variables by name: hidden computes the layers from them


def embed(net, task, tokens, random):
    x = task.hidden**0.5 * tf.gather(net["embedding.weight"], tokens) + positions(
        task
    )  # (batch, length, hidden)
    return dropout(tf.cast(x, task.dtype), task, random)


def encoder_layer(net, name, x, task, random):
    y = self_attention(net, name + ".attention", x, task)
    x = norm(net, name + ".norm1", x + dropout(y, task, random), task)
    y = feed_forward(net, name, x, tf.nn.relu)
    return norm(net, name + ".norm2", x + dropout(y, task, random), task)


def decoder_layer(net, name, x, memory, task, random):
    y = self_attention(net, name + ".attention", x, task, causal(x.shape[1]))
    x = norm(net, name + ".norm1", x + dropout(y, task, random), task)
    y = cross_attention(net, name + ".cross", x, memory, task)
    x = norm(net, name + ".cross.norm", x + dropout(y, task, random), task)
    y = feed_forward(net, name, x, tf.nn.relu)
    return norm(net, name + ".norm2", x + dropout(y, task, random), task)


def hidden(net, task, source, prefix, random=None):
    memory = embed(net, task, source, random)
    for number in range(task.layers):
        memory = encoder_layer(net, "encoder.{}".format(number), memory, task, random)
    x = embed(net, task, prefix, random)
    for number in range(task.layers):
        x = decoder_layer(net, "decoder.{}".format(number), x, memory, task, random)
    return x


def project(net, x):
    kernel = tf.cast(net["embedding.weight"], x.dtype)
    return tf.cast(tf.linalg.matmul(x, kernel, transpose_b=True), tf.float32)  # (..., vocabulary)


def predict(net, task, source, prefix):
    return project(net, hidden(net, task, source, prefix)[:, -1])


def loss(net, task):
    random = make_random(task)

    def compute(source, prefix, y):
        logits = project(net, hidden(net, task, source, prefix, random))
        return cross_entropy(logits, y, task.smoothing)

    return compute


def training_step(net, task):
    return adam_step(net, task, loss(net, task))


def stored(net):
    return net


def activations(net, task):
    return outputs(globals(), ("encoder_layer", "decoder_layer"), lambda *inputs: predict(net, task, *inputs))
