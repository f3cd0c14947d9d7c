"""Transformer in Paddle 1: imperative training, Paddle Inference."""

import numpy
import paddle.fluid as fluid
from paddle.fluid import one_hot
from paddle.fluid.dygraph import Embedding, LayerList
from paddle.fluid.layers import label_smooth, matmul, mean, relu, softmax_with_cross_entropy

from stele_worker.attention.paddle1 import CrossAttention, PostNormLayer, load, neutral, stored
from stele_worker.frameworks.paddle1 import adam_step, as_variable, constant, drop, outputs
from stele_worker.tasks.transformer import positions

__all__ = ["LAYOUT", "load", "neutral", "stored"]

LAYOUT = None
MKLDNN = False


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

    def hidden(self, source, prefix):
        memory = self.embed(source)
        for layer in self.encoder:
            memory = layer(memory)
        x = self.embed(prefix)
        for layer in self.decoder:
            x = layer(x, memory, as_variable(self.causal))
        return x

    def project(self, x):
        return matmul(x, as_variable(self.embedding.weight), transpose_y=True)  # (..., vocabulary)

    def forward(self, source, prefix):  # the next token, because Paddle traces forward for inference
        return self.project(self.hidden(source, prefix)[:, -1])

    def logits(self, source, prefix):
        return self.project(self.hidden(source, prefix))


def network(task):
    return Transformer(task)


def loss(net, task):
    def compute(source, prefix, y):
        labels = label_smooth(
            one_hot(y, task.vocabulary), epsilon=task.smoothing
        )  # (batch, length, vocabulary)
        return mean(softmax_with_cross_entropy(net.logits(source, prefix), labels, soft_label=True))

    return compute


def training_step(net, task):
    return adam_step(net, task, loss(net, task))


def activations(net, task):
    return outputs(
        net,
        ["{}.{}".format(part, number) for part in ("encoder", "decoder") for number in range(task.layers)],
    )
