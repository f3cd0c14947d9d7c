"""GPT-2 in Paddle 3: eager training, Paddle Inference with oneDNN."""

from functools import partial

import paddle
from paddle import nn
from paddle.nn.functional import cross_entropy, dropout, gelu

from stele_worker.attention import EMBEDDINGS
from stele_worker.frameworks.paddle.attention import PreNormLayer, norm
from stele_worker.frameworks.paddle.recipe import PaddleRecipe, adam


class Decoder(nn.Layer):
    def __init__(self, task):
        super().__init__()
        self.rate = task.dropout[0]
        self.tokens = nn.Embedding(task.vocabulary, task.hidden, padding_idx=None, sparse=False)
        self.positions = nn.Embedding(task.positions, task.hidden, sparse=False)
        activation = partial(gelu, approximate=True)
        self.layer = nn.LayerList([PreNormLayer(task, activation) for _ in range(task.layers)])
        self.norm = norm(task)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        x = dropout(x, self.rate, training=self.training)  # (batch, length, hidden)
        for layer in self.layer:
            x = layer(x)
        return self.norm(x)

    def logits(self, x):
        return paddle.matmul(x, self.tokens.weight, transpose_y=True)  # (..., vocabulary)


class Recipe(PaddleRecipe):
    def network(self, task):
        return Decoder(task)

    def forward(self, net, task, tokens):
        return net.logits(net(tokens))

    def predict(self, net, task, tokens):
        return net.logits(net(tokens)[:, -1])

    def layers(self, task):
        return ["layer.{}".format(number) for number in range(task.layers)]

    def loss(self, task, output, y):
        return cross_entropy(output.flatten(0, 1), y.flatten())

    def optimiser(self, net, task):
        return adam(net, task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 and name not in EMBEDDINGS else array  # dense: (in, out)
