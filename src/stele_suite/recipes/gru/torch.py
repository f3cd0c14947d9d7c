"""GRU on IMDB in PyTorch: eager nn.GRU, fused optimiser."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from stele_worker.frameworks.torch.recipe import TorchRecipe


class Classifier(nn.Module):
    def __init__(self, task):
        super().__init__()
        self.embedding = nn.Embedding(task.vocabulary, task.embedding)
        self.gru = nn.GRU(task.embedding, task.hidden, batch_first=True)
        self.dense = nn.Linear(task.hidden, 2)

    def forward(self, x):
        x = self.embedding(x)  # (batch, 150, 125)
        x, _ = self.gru(x)  # (batch, 150, 100)
        return self.dense(x[:, -1])  # (batch, 2)


class Recipe(TorchRecipe):
    NAMES = {
        "gru.input_weight": "gru.weight_ih_l0",
        "gru.hidden_weight": "gru.weight_hh_l0",
        "gru.input_bias": "gru.bias_ih_l0",
        "gru.hidden_bias": "gru.bias_hh_l0",
    }

    def network(self, task):
        return Classifier(task)

    def layers(self, task):
        return ("embedding", "dense")

    def loss(self, task, output, y):
        return cross_entropy(output, y)

    def optimiser(self, net, task):
        betas = task.beta1, task.beta2
        return torch.optim.Adam(net.parameters(), lr=task.learning_rate, betas=betas, eps=task.epsilon, fused=True)
