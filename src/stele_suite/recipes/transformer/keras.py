"""Transformer in Keras 3: functional; Keras' documented loop, compiled where that is faster."""

import keras
from keras import ops

from stele_suite.tasks.transformer import positions
from stele_worker.attention import EMBEDDINGS
from stele_worker.frameworks.keras.attention import (
    Embedding,
    cross_attention,
    dropout,
    feed_forward,
    norm,
    self_attention,
)
from stele_worker.frameworks.keras.recipe import KerasRecipe, adam, set_policy


def encoder_layer(x, name, task):
    x = norm(x + dropout(self_attention(x, name + ".attention", task), task), name + ".norm1", task)
    return norm(x + dropout(feed_forward(x, name, task, "relu"), task), name + ".norm2", task)


def decoder_layer(x, memory, name, task):
    y = self_attention(x, name + ".attention", task, causal=True)
    x = norm(x + dropout(y, task), name + ".norm1", task)
    y = cross_attention(x, memory, name + ".cross", task)
    x = norm(x + dropout(y, task), name + ".cross.norm", task)
    return norm(x + dropout(feed_forward(x, name, task, "relu"), task), name + ".norm2", task)


class Recipe(KerasRecipe):
    XLA = True

    def network(self, task):
        set_policy(task)
        source, prefix = [keras.Input((task.length,), dtype="int32") for _ in range(2)]
        embedding = Embedding(task.vocabulary, task.hidden, name="embedding")
        places = ops.convert_to_tensor(positions(task))  # a NumPy array would be copied in each step

        def embed(tokens):
            return dropout(task.hidden**0.5 * embedding(tokens) + places, task)  # (batch, length, hidden)

        memory = embed(source)
        for number in range(task.layers):
            memory = encoder_layer(memory, "encoder.{}".format(number), task)
        x = embed(prefix)
        for number in range(task.layers):
            x = decoder_layer(x, memory, "decoder.{}".format(number), task)
        logits = embedding(x, reverse=True)  # (batch, length, vocabulary)
        return keras.Model([source, prefix], logits)

    def predict(self, net, task, source, prefix):
        x = self.output_of(net, "decoder.{}".format(task.layers - 1))
        return net.get_layer("embedding")(x[:, -1], reverse=True)  # of the last position

    def layers(self, task):
        return ["{}.{}".format(part, number) for part in ("encoder", "decoder") for number in range(task.layers)]

    def output_of(self, net, name):
        return super().output_of(net, name + ".norm2")

    def loss(self, task, output, y):
        """Return the mean cross-entropy, with labels smoothed over the vocabulary."""
        logarithms = ops.log_softmax(output)
        right = ops.mean(ops.take_along_axis(logarithms, y[..., None], axis=-1))
        return -(1 - task.smoothing) * right - task.smoothing * ops.mean(logarithms)

    def optimiser(self, net, task):
        return adam(task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 and name not in EMBEDDINGS else array  # (in, out)
