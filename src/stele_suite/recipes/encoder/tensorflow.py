"""BERT-shaped encoder in TensorFlow: one tf.function per step, compiled by XLA."""

import tensorflow as tf

from stele_worker.attention import EMBEDDINGS
from stele_worker.frameworks.tensorflow.attention import Norm, PostNormLayer, cross_entropy
from stele_worker.frameworks.tensorflow.recipe import Adam, Embedding, Linear, TensorFlowRecipe, dropout


class Encoder(tf.Module):
    def __init__(self, task):
        super().__init__()
        self.rate, self.dtype = task.dropout[0], task.dtype
        self.tokens = Embedding(task.vocabulary, task.hidden)
        self.positions = Embedding(task.positions, task.hidden)
        self.segments = Embedding(task.segments, task.hidden)
        self.norm = Norm(task)
        self.layer = [PostNormLayer(task, tf.nn.gelu) for _ in range(task.layers)]
        self.pooler = Linear(task.hidden, task.hidden)
        self.classifier = Linear(task.hidden, task.classes)

    def __call__(self, tokens, segments, record, training=None):
        x = self.tokens(tokens) + self.segments(segments)
        x = self.norm(x + self.positions.weight[: tokens.shape[1]])  # (batch, length, hidden)
        x = dropout(tf.cast(x, self.dtype), self.rate, training)
        mask = (tokens != 0)[:, None, None]  # (batch, heads, queries, keys)
        for number, layer in enumerate(self.layer):
            x = record("layer.{}".format(number), layer(x, training, mask))
        x = tf.tanh(self.pooler(x[:, 0]))  # (batch, hidden)
        return tf.cast(self.classifier(dropout(x, self.rate, training)), tf.float32)  # (batch, classes)


class Recipe(TensorFlowRecipe):
    XLA = True  # it fuses the softmax, the normalisations and the activations

    def network(self, task):
        return Encoder(task)

    def loss(self, task, output, y):
        return cross_entropy(output, y)

    def optimiser(self, net, task):
        return Adam(task, self.trained(net))

    def layout(self, name, array):
        return array.T if array.ndim == 2 and name not in EMBEDDINGS else array  # (in, out)
