"""GPT-2 in TensorFlow: one tf.function per step, compiled by XLA."""

from functools import partial

import tensorflow as tf

from stele_worker.attention import EMBEDDINGS
from stele_worker.frameworks.tensorflow.attention import Layer, Norm, causal, cross_entropy
from stele_worker.frameworks.tensorflow.recipe import Adam, Embedding, TensorFlowRecipe, dropout


class PreNormLayer(Layer):
    def __call__(self, x, training, mask):
        x = x + dropout(self.attention(self.norm1(x), mask), self.rate, training)
        return x + dropout(self.feed_forward(self.norm2(x)), self.rate, training)


class Decoder(tf.Module):
    def __init__(self, task):
        super().__init__()
        self.rate, self.dtype = task.dropout[0], task.dtype
        self.tokens = Embedding(task.vocabulary, task.hidden)
        self.positions = Embedding(task.positions, task.hidden)
        gelu = partial(tf.nn.gelu, approximate=True)
        self.layer = [PreNormLayer(task, gelu) for _ in range(task.layers)]
        self.norm = Norm(task)

    def __call__(self, tokens, record, training=None):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        x = dropout(tf.cast(x, self.dtype), self.rate, training)  # (batch, length, hidden)
        mask = causal(tokens.shape[1])
        for number, layer in enumerate(self.layer):
            x = record("layer.{}".format(number), layer(x, training, mask))
        return self.norm(x)

    def logits(self, x):
        kernel = tf.cast(self.tokens.weight, x.dtype)
        return tf.cast(tf.linalg.matmul(x, kernel, transpose_b=True), tf.float32)  # (..., vocabulary)


class Recipe(TensorFlowRecipe):
    XLA = True  # it fuses the softmax, the normalisations and the activations

    def network(self, task):
        return Decoder(task)

    def forward(self, net, task, tokens, training=None):
        return net.logits(net(tokens, self.record, training))

    def predict(self, net, task, tokens):
        return net.logits(net(tokens, self.record)[:, -1])

    def loss(self, task, output, y):
        return cross_entropy(output, y)

    def optimiser(self, net, task):
        return Adam(task, self.trained(net))

    def layout(self, name, array):
        return array.T if array.ndim == 2 and name not in EMBEDDINGS else array  # (in, out)
