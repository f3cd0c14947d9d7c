"""BERT-shaped encoder in Paddle 3: eager training, Paddle Inference with oneDNN."""

import paddle
from paddle import nn
from paddle.nn.functional import cross_entropy, dropout, gelu

from stele_worker.attention import EMBEDDINGS
from stele_worker.frameworks.paddle.attention import PostNormLayer, norm
from stele_worker.frameworks.paddle.recipe import PaddleRecipe, adam


class Encoder(nn.Layer):
    def __init__(self, task):
        super().__init__()
        self.rate = task.dropout[0]
        self.tokens = nn.Embedding(task.vocabulary, task.hidden, padding_idx=None, sparse=False)
        self.positions = nn.Embedding(task.positions, task.hidden, sparse=False)
        self.segments = nn.Embedding(task.segments, task.hidden, sparse=False)
        self.norm = norm(task)
        self.layer = nn.LayerList([PostNormLayer(task, gelu) for _ in range(task.layers)])
        self.pooler = nn.Linear(task.hidden, task.hidden)
        self.classifier = nn.Linear(task.hidden, task.classes)

    def forward(self, tokens, segments):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]] + self.segments(segments)
        x = dropout(self.norm(x), self.rate, training=self.training)  # (batch, length, hidden)
        mask = (tokens != 0).unsqueeze([1, 2])  # (batch, heads, queries, keys)
        for layer in self.layer:
            x = layer(x, mask)
        x = paddle.tanh(self.pooler(x[:, 0]))  # (batch, hidden)
        return self.classifier(dropout(x, self.rate, training=self.training))  # (batch, classes)


class Recipe(PaddleRecipe):
    def network(self, task):
        return Encoder(task)

    def layers(self, task):
        return ["layer.{}".format(number) for number in range(task.layers)]

    def loss(self, task, output, y):
        return cross_entropy(output, y)

    def optimiser(self, net, task):
        return adam(net, task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 and name not in EMBEDDINGS else array  # dense: (in, out)
