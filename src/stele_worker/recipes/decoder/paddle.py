"""GPT-2 in Paddle 3: eager training, Paddle Inference with oneDNN."""

from functools import partial

import paddle
from paddle import nn
from paddle.nn.functional import cross_entropy, dropout, gelu

from stele_worker.attention.paddle import PreNormLayer, adam_step, load, neutral, norm, stored
from stele_worker.frameworks.paddle import outputs

__all__ = ["LAYOUT", "load", "neutral", "stored"]

LAYOUT = None


class Decoder(nn.Layer):
    def __init__(self, task):
        super().__init__()
        self.rate = task.dropout[0]
        self.tokens = nn.Embedding(task.vocabulary, task.hidden, padding_idx=None, sparse=False)
        self.positions = nn.Embedding(task.positions, task.hidden, sparse=False)
        activation = partial(gelu, approximate=True)
        self.layer = nn.LayerList([PreNormLayer(task, activation) for _ in range(task.layers)])
        self.norm = norm(task)

    def hidden(self, tokens):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        x = dropout(x, self.rate, training=self.training)  # (batch, length, hidden)
        for layer in self.layer:
            x = layer(x)
        return self.norm(x)

    def project(self, x):
        return paddle.matmul(x, self.tokens.weight, transpose_y=True)  # (..., vocabulary)

    def forward(self, tokens):  # the next token, because Paddle saves forward for inference
        return self.project(self.hidden(tokens)[:, -1])

    def logits(self, tokens):
        return self.project(self.hidden(tokens))


def network(task):
    return Decoder(task)


def loss(net, task):
    def compute(tokens, y):
        return cross_entropy(net.logits(tokens).flatten(0, 1), y.flatten())

    return compute


def training_step(net, task):
    return adam_step(net, task, loss(net, task))


def activations(net, task):
    return outputs(net, ["layer.{}".format(number) for number in range(task.layers)])
