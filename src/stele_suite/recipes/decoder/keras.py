"""GPT-2 in Keras 3: functional; Keras' documented loop, compiled where that is faster."""

import keras
from keras import ops

from stele_worker.attention import EMBEDDINGS
from stele_worker.frameworks.keras.attention import Embedding, Positions, dropout, feed_forward, norm, self_attention
from stele_worker.frameworks.keras.recipe import KerasRecipe, adam, plain, set_policy


def gelu(x):
    return keras.activations.gelu(x, approximate=True)


def layer(x, name, task):
    y = self_attention(norm(x, name + ".norm1", task), name + ".attention", task, causal=True)
    x = x + dropout(y, task)
    y = feed_forward(norm(x, name + ".norm2", task), name, task, gelu)
    return keras.layers.Add(name=plain(name))([x, dropout(y, task)])


class Recipe(KerasRecipe):
    XLA = True

    def network(self, task):
        set_policy(task)
        tokens = keras.Input((task.length,), dtype="int32")
        embedding = Embedding(task.vocabulary, task.hidden, name="tokens")
        x = dropout(Positions(task.positions, name="positions")(embedding(tokens)), task)  # (batch, length, hidden)
        for number in range(task.layers):
            x = layer(x, "layer.{}".format(number), task)
        logits = embedding(norm(x, "norm", task), reverse=True)  # (batch, length, vocabulary)
        return keras.Model(tokens, logits)

    def predict(self, net, task, tokens):
        return net.get_layer("tokens")(net.get_layer("norm").output[:, -1], reverse=True)  # of the last position

    def layers(self, task):
        return ["layer.{}".format(number) for number in range(task.layers)]

    def loss(self, task, output, y):
        return ops.mean(keras.losses.sparse_categorical_crossentropy(y, output, from_logits=True))

    def optimiser(self, net, task):
        return adam(task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 and name not in EMBEDDINGS else array  # (in, out)
