"""Transformer in TensorFlow: one tf.function per step, compiled by XLA."""

import tensorflow as tf

from stele_suite.tasks.transformer import positions
from stele_worker.attention import EMBEDDINGS
from stele_worker.frameworks.tensorflow.attention import CrossAttention, PostNormLayer, causal, cross_entropy
from stele_worker.frameworks.tensorflow.recipe import Adam, Embedding, TensorFlowRecipe, dropout


class DecoderLayer(PostNormLayer):
    def __init__(self, task, activation):
        super().__init__(task, activation)
        self.cross = CrossAttention(task)

    def __call__(self, x, memory, training):
        x = self.norm1(x + dropout(self.attention(x, causal(x.shape[1])), self.rate, training))
        x = self.cross.norm(x + dropout(self.cross(x, memory), self.rate, training))
        return self.norm2(x + dropout(self.feed_forward(x), self.rate, training))


class Transformer(tf.Module):
    def __init__(self, task):
        super().__init__()
        self.rate, self.dtype, self.scale = task.dropout[0], task.dtype, task.hidden**0.5
        self.embedding = Embedding(task.vocabulary, task.hidden)
        self.positions = positions(task)
        self.encoder = [PostNormLayer(task, tf.nn.relu) for _ in range(task.layers)]
        self.decoder = [DecoderLayer(task, tf.nn.relu) for _ in range(task.layers)]

    def embed(self, tokens, training):
        x = self.scale * self.embedding(tokens) + self.positions  # (batch, length, hidden)
        return dropout(tf.cast(x, self.dtype), self.rate, training)

    def __call__(self, source, prefix, record, training=None):
        memory = self.embed(source, training)
        for number, layer in enumerate(self.encoder):
            memory = record("encoder.{}".format(number), layer(memory, training))
        x = self.embed(prefix, training)
        for number, layer in enumerate(self.decoder):
            x = record("decoder.{}".format(number), layer(x, memory, training))
        return x

    def logits(self, x):
        kernel = tf.cast(self.embedding.weight, x.dtype)
        return tf.cast(tf.linalg.matmul(x, kernel, transpose_b=True), tf.float32)  # (..., vocabulary)


class Recipe(TensorFlowRecipe):
    XLA = True  # it fuses the softmax, the normalisations and the activations

    def network(self, task):
        return Transformer(task)

    def forward(self, net, task, source, prefix, training=None):
        return net.logits(net(source, prefix, self.record, training))

    def predict(self, net, task, source, prefix):
        return net.logits(net(source, prefix, self.record)[:, -1])

    def loss(self, task, output, y):
        return cross_entropy(output, y, task.smoothing)

    def optimiser(self, net, task):
        return Adam(task, self.trained(net))

    def layout(self, name, array):
        return array.T if array.ndim == 2 and name not in EMBEDDINGS else array  # (in, out)
