"""BERT-shaped encoder in Paddle 1: imperative training, Paddle Inference."""

import paddle.fluid as fluid
from paddle.fluid.dygraph import Embedding, LayerList, Linear
from paddle.fluid.layers import cast, gelu, mean, reshape, slice, softmax_with_cross_entropy, tanh

from stele_worker.attention.paddle1 import PostNormLayer, load, neutral, norm, stored
from stele_worker.frameworks.paddle1 import adam_step, as_variable, drop, outputs

__all__ = ["LAYOUT", "load", "neutral", "stored"]

LAYOUT = None
MKLDNN = False


class Encoder(fluid.dygraph.Layer):
    def __init__(self, task):
        super().__init__()
        self.rate, self.length, self.hidden = task.dropout[0], task.length, task.hidden
        self.tokens = Embedding([task.vocabulary, task.hidden], is_sparse=False, padding_idx=None)
        self.positions = Embedding([task.positions, task.hidden], is_sparse=False)
        self.segments = Embedding([task.segments, task.hidden], is_sparse=False)
        self.norm = norm(task)
        self.layer = LayerList([PostNormLayer(task, gelu) for _ in range(task.layers)])
        self.pooler = Linear(task.hidden, task.hidden)
        self.classifier = Linear(task.hidden, task.classes)

    def forward(self, tokens, segments):
        places = slice(as_variable(self.positions.weight), axes=[0], starts=[0], ends=[self.length])
        x = self.tokens(tokens) + places + self.segments(segments)
        x = drop(self.norm(x), self.rate, self.training)  # (batch, length, hidden)
        padding = cast(tokens == fluid.layers.zeros_like(tokens), "float32")
        bias = reshape(padding * -1e9, [0, 1, 1, self.length])  # (batch, heads, queries, keys)
        for layer in self.layer:
            x = layer(x, bias)
        first = reshape(slice(x, axes=[1], starts=[0], ends=[1]), [0, self.hidden])
        x = tanh(self.pooler(first))  # (batch, hidden)
        return self.classifier(drop(x, self.rate, self.training))  # (batch, classes)


def network(task):
    return Encoder(task)


def loss(net, task):
    return lambda tokens, segments, y: mean(softmax_with_cross_entropy(net(tokens, segments), y))


def training_step(net, task):
    return adam_step(net, task, loss(net, task))


def activations(net, task):
    return outputs(net, ["layer.{}".format(number) for number in range(task.layers)])
