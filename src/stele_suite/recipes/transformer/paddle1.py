"""Transformer in Paddle 1: imperative training, Paddle Inference."""

import numpy
import paddle.fluid as fluid
from paddle.fluid import one_hot
from paddle.fluid.dygraph import Embedding, LayerList
from paddle.fluid.layers import label_smooth, matmul, mean, relu, softmax_with_cross_entropy

from stele_suite.tasks.transformer import positions
from stele_worker.attention import EMBEDDINGS
from stele_worker.frameworks.paddle1.attention import CrossAttention, PostNormLayer
from stele_worker.frameworks.paddle1.recipe import Adam, Paddle1Recipe, as_variable, constant, drop


class DecoderLayer(PostNormLayer):
    def __init__(self, task, activation):
        super().__init__(task, activation)
        self.cross = CrossAttention(task)

    def forward(self, x, memory, bias):
        x = self.norm1(x + self.drop(self.attention(x, bias)))
        x = self.cross.norm(x + self.drop(self.cross(x, memory)))
        return self.norm2(x + self.drop(self.feed_forward(x)))


class Transformer(fluid.dygraph.Layer):
    def __init__(self, task):
        super().__init__()
        self.rate, self.scale = task.dropout[0], task.hidden**0.5
        self.embedding = Embedding([task.vocabulary, task.hidden], is_sparse=False, padding_idx=None)
        self.positions = constant(self, positions(task))
        above = numpy.triu(numpy.full((task.length, task.length), -1e9, numpy.float32), 1)
        self.causal = constant(self, above[None, None])  # (batch, heads, queries, keys)
        self.encoder = LayerList([PostNormLayer(task, relu) for _ in range(task.layers)])
        self.decoder = LayerList([DecoderLayer(task, relu) for _ in range(task.layers)])

    def embed(self, tokens):
        x = self.embedding(tokens) * self.scale + as_variable(self.positions)  # (batch, length, hidden)
        return drop(x, self.rate, self.training)

    def forward(self, source, prefix):
        memory = self.embed(source)
        for layer in self.encoder:
            memory = layer(memory)
        x = self.embed(prefix)
        for layer in self.decoder:
            x = layer(x, memory, as_variable(self.causal))
        return x

    def logits(self, x):
        return matmul(x, as_variable(self.embedding.weight), transpose_y=True)  # (..., vocabulary)


class Recipe(Paddle1Recipe):
    MKLDNN = False

    def network(self, task):
        return Transformer(task)

    def forward(self, net, task, source, prefix):
        return net.logits(net(source, prefix))

    def predict(self, net, task, source, prefix):
        return net.logits(net(source, prefix)[:, -1])

    def layers(self, task):
        return ["{}.{}".format(part, number) for part in ("encoder", "decoder") for number in range(task.layers)]

    def loss(self, task, output, y):
        labels = label_smooth(one_hot(y, task.vocabulary), epsilon=task.smoothing)  # (batch, length, vocabulary)
        return mean(softmax_with_cross_entropy(output, labels, soft_label=True))

    def optimiser(self, net, task):
        return Adam(net, task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 and name not in EMBEDDINGS else array  # dense: (in, out)

    def is_of_task(self, name):
        return name not in ("positions", "causal")
