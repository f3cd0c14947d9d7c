"""The decoder of TensorFlow, token by token: one tf.while_loop, which keeps keys and values of the full length."""

import tensorflow as tf

from stele_worker.attention.tensorflow import attend, feed_forward, linear, norm, split
from stele_worker.recipes.decoder.tensorflow import LAYOUT, XLA, gelu, load, network, neutral, project, stored

__all__ = ["LAYOUT", "XLA", "load", "network", "neutral", "stored"]


def layer(net, name, x, task, place, keys, values):
    """Return the layer of one position, and the keys and values (length, batch, heads, size) with its own."""
    q, k, v = split(linear(net, name + ".attention.qkv", norm(net, name + ".norm1", x, task)), 3, task)
    keys = tf.tensor_scatter_nd_update(keys, [[place]], k[None, :, :, 0])
    values = tf.tensor_scatter_nd_update(values, [[place]], v[None, :, :, 0])
    mask = tf.range(task.length) <= place
    y = attend(q, tf.transpose(keys, (1, 2, 0, 3)), tf.transpose(values, (1, 2, 0, 3)), mask)
    x = x + linear(net, name + ".attention.out", y)
    return x + feed_forward(net, name, norm(net, name + ".norm2", x, task), gelu), keys, values


def predict(net, task, tokens):
    net = {name: tf.convert_to_tensor(weight) for name, weight in net.items()}  # read once, not in the loop
    batch, length = tokens.shape
    shape = (length, batch, task.heads, task.hidden // task.heads)
    caches = [(tf.zeros(shape, task.dtype), tf.zeros(shape, task.dtype)) for _ in range(task.layers)]

    def one(place, x, caches):
        x = tf.gather(net["tokens.weight"], tokens[:, place]) + net["positions.weight"][place]
        x, written = tf.cast(x, task.dtype)[:, None], []  # (batch, 1, hidden)
        for number, (keys, values) in enumerate(caches):
            x, keys, values = layer(net, "layer.{}".format(number), x, task, place, keys, values)
            written.append((keys, values))
        return place + 1, x, written

    start = tf.constant(0), tf.zeros((batch, 1, task.hidden), task.dtype), caches
    _, x, _ = tf.while_loop(lambda place, *_: place < length, one, start, maximum_iterations=length)
    return project(net, norm(net, "norm", x, task)[:, -1])
