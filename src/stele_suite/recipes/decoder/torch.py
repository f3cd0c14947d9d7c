"""GPT-2 in PyTorch: eager, fused attention, fused optimiser."""

from functools import partial

import torch
from torch import nn
from torch.nn.functional import cross_entropy, dropout, gelu, linear

from stele_worker.frameworks.torch.attention import PreNormLayer, norm
from stele_worker.frameworks.torch.recipe import TorchRecipe, autocast


class Decoder(nn.Module):
    def __init__(self, task):
        super().__init__()
        self.rate = task.dropout[0]
        self.tokens = nn.Embedding(task.vocabulary, task.hidden)
        self.positions = nn.Embedding(task.positions, task.hidden)
        activation = partial(gelu, approximate="tanh")
        self.layer = nn.ModuleList([PreNormLayer(task, activation) for _ in range(task.layers)])
        self.norm = norm(task)

    def forward(self, tokens, caches=None, place=0):
        """Return the last layer. With ``caches``, (layers, 2, ...), of one position that follows those before."""
        length = tokens.shape[1]
        x = self.tokens(tokens) + self.positions.weight[place : place + length]
        x = dropout(x, self.rate, self.training)  # (batch, length, hidden)
        for number, layer in enumerate(self.layer):
            cache = None if caches is None else caches[number]
            x = layer(x, causal=caches is None, cache=cache, place=place)
        return self.norm(x)

    def logits(self, x):
        return linear(x, self.tokens.weight).float()  # (..., vocabulary)


class Recipe(TorchRecipe):
    def network(self, task):
        return Decoder(task)

    def forward(self, net, task, tokens):
        with autocast(task):
            return net.logits(net(tokens))

    def predict(self, net, task, tokens):
        with autocast(task):
            return net.logits(net(tokens)[:, -1])

    def layers(self, task):
        return ["layer.{}".format(number) for number in range(task.layers)]

    def loss(self, task, output, y):
        return cross_entropy(output.flatten(0, 1), y.flatten())

    def optimiser(self, net, task):
        betas = task.beta1, task.beta2
        return torch.optim.Adam(net.parameters(), lr=task.learning_rate, betas=betas, eps=task.epsilon, fused=True)
