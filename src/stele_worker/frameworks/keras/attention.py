"""Layers with attention in Keras 3, functional: the attention of the backend, one product for query, key and value.

The name of a layer is that of the Task with "_" for ".", which PyTorch does not allow in a name.
"""

import keras
from keras import layers, ops

from stele_worker.frameworks.keras.recipe import plain


def linear(x, name, size, activation=None, **options):
    return layers.Dense(size, activation=activation, name=plain(name), **options)(x)


def norm(x, name, task):
    return layers.LayerNormalization(epsilon=task.norm_epsilon, name=plain(name))(x)


def dropout(x, task):
    return layers.Dropout(task.dropout[0])(x)


class Embedding(layers.Embedding):
    """An embedding that is also an output layer: with ``reverse`` it returns float32 logits."""

    def call(self, inputs, reverse=False):
        if not reverse:
            return super().call(inputs)
        kernel = ops.cast(ops.transpose(self.embeddings), inputs.dtype)
        return ops.cast(ops.matmul(inputs, kernel), "float32")

    def compute_output_spec(self, inputs, reverse=False):
        size, dtype = (self.input_dim, "float32") if reverse else (self.output_dim, self.compute_dtype)
        shape = inputs.shape[:-1] if reverse else inputs.shape
        return keras.KerasTensor((*shape, size), dtype)


class Positions(layers.Layer):
    """Learned positions, which are added to a sequence, from ``place`` on."""

    def __init__(self, count, **options):
        super().__init__(**options)
        self.count = count

    def build(self, shape):
        self.embeddings = self.add_weight(shape=(self.count, shape[-1]), name="embeddings")

    def call(self, x, place=0):
        size = (x.shape[1], x.shape[2])
        return x + ops.cast(ops.slice(ops.convert_to_tensor(self.embeddings), (place, 0), size), x.dtype)

    def compute_output_spec(self, x, place=0):
        return keras.KerasTensor(x.shape, x.dtype)


def split(x, count, task):
    """Return (batch, length, count * hidden) as ``count`` tensors (batch, length, heads, size)."""
    x = ops.reshape(x, (-1, x.shape[1], count, task.heads, task.hidden // task.heads))
    return [x[:, :, number] for number in range(count)]


def attend(q, k, v, task, mask=None, causal=False):
    x = ops.dot_product_attention(q, k, v, mask=mask, is_causal=causal)
    return ops.reshape(x, (-1, q.shape[1], task.hidden))


def self_attention(x, name, task, mask=None, causal=False):
    q, k, v = split(linear(x, name + ".qkv", 3 * task.hidden), 3, task)
    return linear(attend(q, k, v, task, mask, causal), name + ".out", task.hidden)


def cross_attention(x, memory, name, task):
    (q,) = split(linear(x, name + ".query", task.hidden), 1, task)
    k, v = split(linear(memory, name + ".kv", 2 * task.hidden), 2, task)
    return linear(attend(q, k, v, task), name + ".out", task.hidden)


def feed_forward(x, name, task, activation):
    return linear(linear(x, name + ".dense1", task.inner, activation), name + ".dense2", task.hidden)
