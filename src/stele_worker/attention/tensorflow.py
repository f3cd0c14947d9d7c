"""Layers with attention in TensorFlow, which has no fused attention: two products and a softmax."""

import tensorflow as tf

from stele_worker.attention import neutral
from stele_worker.frameworks.tensorflow import adam, make_training_step
from stele_worker.frameworks.tensorflow import dropout as drop


def linear(net, name, x):
    kernel, bias = tf.cast(net[name + ".weight"], x.dtype), tf.cast(net[name + ".bias"], x.dtype)
    return tf.nn.bias_add(tf.linalg.matmul(x, kernel), bias)


def norm(net, name, x, task):
    """Normalise in float32."""
    dtype, x = x.dtype, tf.cast(x, tf.float32)
    mean, variance = tf.nn.moments(x, -1, keepdims=True)
    shift, scale = net[name + ".bias"], net[name + ".weight"]
    return tf.cast(tf.nn.batch_normalization(x, mean, variance, shift, scale, task.norm_epsilon), dtype)


def attend(q, k, v, mask=None):
    """Return scaled dot-product attention of arrays (batch, heads, length, size), as (batch, length, hidden)."""
    scores = tf.linalg.matmul(q, k, transpose_b=True) * q.shape[-1] ** -0.5  # (batch, heads, queries, keys)
    if mask is not None:
        scores = tf.where(mask, scores, scores.dtype.min)
    x = tf.linalg.matmul(tf.nn.softmax(scores), v)
    return tf.reshape(tf.transpose(x, (0, 2, 1, 3)), (-1, q.shape[2], q.shape[1] * q.shape[3]))


def split(x, count, task):
    """Return (batch, length, count * hidden) as ``count`` arrays (batch, heads, length, size)."""
    x = tf.reshape(x, (-1, x.shape[1], count, task.heads, task.hidden // task.heads))
    return tf.unstack(tf.transpose(x, (2, 0, 3, 1, 4)), num=count)


def self_attention(net, name, x, task, mask=None):
    q, k, v = split(linear(net, name + ".qkv", x), 3, task)
    return linear(net, name + ".out", attend(q, k, v, mask))


def cross_attention(net, name, x, memory, task):
    (q,) = split(linear(net, name + ".query", x), 1, task)
    k, v = split(linear(net, name + ".kv", memory), 2, task)
    return linear(net, name + ".out", attend(q, k, v))


def causal(length):
    """Return the mask (length, length) of positions that attend to themselves and those before."""
    return tf.linalg.band_part(tf.ones((length, length), tf.bool), -1, 0)


def feed_forward(net, name, x, activation):
    return linear(net, name + ".dense2", activation(linear(net, name + ".dense1", x)))


def dropout(x, task, random):
    """Drop numbers out; ``random`` is a generator, or None in inference."""
    return drop(x, task.dropout[0], random)


def cross_entropy(logits, labels, smoothing=0.0):
    """Return the mean over all labels of logits (..., classes)."""
    value = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    if smoothing:
        even = tf.reduce_logsumexp(logits, -1) - tf.reduce_mean(logits, -1)
        value = (1 - smoothing) * value + smoothing * even
    return tf.reduce_mean(value)


def load(net, weights):
    for name, array in weights.items():
        net[name] = tf.Variable(neutral(name, array), name=name)
    return net


def trainable(net):
    return net


def adam_step(net, task, loss):
    return make_training_step(loss, net, adam(task, net), xla=True)
