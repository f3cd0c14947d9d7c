"""BERT-shaped encoder in Keras 3: functional; Keras' documented loop, compiled where that is faster."""

import keras
from keras import layers, ops

from stele_worker.attention import EMBEDDINGS
from stele_worker.frameworks.keras.attention import (
    Embedding,
    Positions,
    dropout,
    feed_forward,
    linear,
    norm,
    self_attention,
)
from stele_worker.frameworks.keras.recipe import KerasRecipe, adam, set_policy


def gelu(x):
    return keras.activations.gelu(x, approximate=False)


def layer(x, name, task, mask):
    x = norm(x + dropout(self_attention(x, name + ".attention", task, mask), task), name + ".norm1", task)
    return norm(x + dropout(feed_forward(x, name, task, gelu), task), name + ".norm2", task)


class Recipe(KerasRecipe):
    XLA = True

    def network(self, task):
        set_policy(task)
        tokens, segments = [keras.Input((task.length,), dtype="int32") for _ in range(2)]
        x = Embedding(task.vocabulary, task.hidden, name="tokens")(tokens)
        x = layers.Add()([x, Embedding(task.segments, task.hidden, name="segments")(segments)])
        x = Positions(task.positions, name="positions")(x)
        x = dropout(norm(x, "norm", task), task)  # (batch, length, hidden)
        mask = (tokens != 0)[:, None, None]  # (batch, heads, queries, keys)
        for number in range(task.layers):
            x = layer(x, "layer.{}".format(number), task, mask)
        x = dropout(linear(x[:, 0], "pooler", task.hidden, "tanh"), task)  # (batch, hidden)
        logits = linear(x, "classifier", task.classes, dtype="float32")
        return keras.Model([tokens, segments], logits)

    def layers(self, task):
        return ["layer.{}".format(number) for number in range(task.layers)]

    def output_of(self, net, name):
        return super().output_of(net, name + ".norm2")

    def loss(self, task, output, y):
        return ops.mean(keras.losses.sparse_categorical_crossentropy(y, output, from_logits=True))

    def optimiser(self, net, task):
        return adam(task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 and name not in EMBEDDINGS else array  # (in, out)
