"""The decoder of TensorFlow, token by token: one tf.while_loop, which keeps keys and values of the full length."""

import copy

import tensorflow as tf

from stele_suite.recipes.decoder import tensorflow as decoder
from stele_worker.frameworks.tensorflow.attention import attend, split


def read(part):
    """Return a module with the values of its variables, so that a loop does not read the variables again."""
    if isinstance(part, tf.Variable):
        return tf.convert_to_tensor(part)
    if isinstance(part, list):
        return [read(child) for child in part]
    if not isinstance(part, tf.Module):
        return part
    result = copy.copy(part)
    vars(result).update((name, read(child)) for name, child in vars(part).items())
    return result


def apply(layer, x, place, keys, values):
    """Return the layer of one position, and the keys and values (length, batch, heads, size) with its own."""
    q, k, v = split(layer.attention.qkv(layer.norm1(x)), 3, layer.attention.heads)
    keys = tf.tensor_scatter_nd_update(keys, [[place]], k[None, :, :, 0])
    values = tf.tensor_scatter_nd_update(values, [[place]], v[None, :, :, 0])
    mask = tf.range(keys.shape[0]) <= place
    y = attend(q, tf.transpose(keys, (1, 2, 0, 3)), tf.transpose(values, (1, 2, 0, 3)), mask)
    x = x + layer.attention.out(y)
    return x + layer.feed_forward(layer.norm2(x)), keys, values


class Recipe(decoder.Recipe):
    def predict(self, net, task, tokens):
        net = read(net)
        batch, length = tokens.shape
        shape = (length, batch, task.heads, task.hidden // task.heads)
        caches = [(tf.zeros(shape, task.dtype), tf.zeros(shape, task.dtype)) for _ in range(task.layers)]

        def next_token(place, x, caches):
            x = net.tokens(tokens[:, place]) + net.positions.weight[place]
            x, written = tf.cast(x, task.dtype)[:, None], []  # (batch, 1, hidden)
            for layer, (keys, values) in zip(net.layer, caches):
                x, keys, values = apply(layer, x, place, keys, values)
                written.append((keys, values))
            return place + 1, x, written

        start = tf.constant(0), tf.zeros((batch, 1, task.hidden), task.dtype), caches
        _, x, _ = tf.while_loop(lambda place, *_: place < length, next_token, start, maximum_iterations=length)
        return net.logits(net.norm(x)[:, -1])

    def activations(self, net, task):
        return None  # the layers are in a loop over the tokens
