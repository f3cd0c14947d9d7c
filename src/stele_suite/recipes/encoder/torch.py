"""BERT-shaped encoder in PyTorch: eager, fused attention, fused optimiser."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, dropout, gelu

from stele_worker.frameworks.torch.attention import PostNormLayer, norm
from stele_worker.frameworks.torch.recipe import TorchRecipe


class Encoder(nn.Module):
    def __init__(self, task):
        super().__init__()
        self.rate = task.dropout[0]
        self.tokens = nn.Embedding(task.vocabulary, task.hidden)
        self.positions = nn.Embedding(task.positions, task.hidden)
        self.segments = nn.Embedding(task.segments, task.hidden)
        self.norm = norm(task)
        self.layer = nn.ModuleList([PostNormLayer(task, gelu) for _ in range(task.layers)])
        self.pooler = nn.Linear(task.hidden, task.hidden)
        self.classifier = nn.Linear(task.hidden, task.classes)

    def forward(self, tokens, segments):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]] + self.segments(segments)
        x = dropout(self.norm(x), self.rate, self.training)  # (batch, length, hidden)
        mask = (tokens != 0)[:, None, None]  # (batch, heads, queries, keys)
        for layer in self.layer:
            x = layer(x, mask=mask)
        x = torch.tanh(self.pooler(x[:, 0]))  # (batch, hidden)
        return self.classifier(dropout(x, self.rate, self.training))  # (batch, classes)


class Recipe(TorchRecipe):
    def network(self, task):
        return Encoder(task)

    def layers(self, task):
        return ["layer.{}".format(number) for number in range(task.layers)]

    def loss(self, task, output, y):
        return cross_entropy(output, y)

    def optimiser(self, net, task):
        betas = task.beta1, task.beta2
        return torch.optim.Adam(net.parameters(), lr=task.learning_rate, betas=betas, eps=task.epsilon, fused=True)
