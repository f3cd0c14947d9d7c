"""BERT-shaped encoder in Paddle 1: imperative training, Paddle Inference."""

import paddle.fluid as fluid
from paddle.fluid.dygraph import Embedding, LayerList, Linear
from paddle.fluid.layers import cast, gelu, mean, reshape, slice, softmax_with_cross_entropy, tanh

from stele_worker.attention import EMBEDDINGS
from stele_worker.frameworks.paddle1.attention import PostNormLayer, norm
from stele_worker.frameworks.paddle1.recipe import Adam, Paddle1Recipe, as_variable, drop


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


class Recipe(Paddle1Recipe):
    MKLDNN = False

    def network(self, task):
        return Encoder(task)

    def layers(self, task):
        return ["layer.{}".format(number) for number in range(task.layers)]

    def loss(self, task, output, y):
        return mean(softmax_with_cross_entropy(output, y))

    def optimiser(self, net, task):
        return Adam(net, task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 and name not in EMBEDDINGS else array  # dense: (in, out)
