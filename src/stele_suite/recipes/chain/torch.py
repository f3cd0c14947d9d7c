"""A chain of operations in PyTorch: eager."""

import torch
from torch import nn
from torch.nn.functional import mse_loss

from stele_worker.frameworks.torch.recipe import TorchRecipe


class Chain(nn.Module):
    def __init__(self, task):
        super().__init__()
        self.links = task.links
        self.factor = nn.Parameter(torch.empty(task.width))
        self.summand = nn.Parameter(torch.empty(task.width))

    def forward(self, x):
        for _ in range(self.links):
            x = x * self.factor + self.summand  # (batch, width)
        return x


class Recipe(TorchRecipe):
    def network(self, task):
        return Chain(task)

    def loss(self, task, output, y):
        return mse_loss(output, y)

    def optimiser(self, net, task):
        return torch.optim.SGD(net.parameters(), lr=task.learning_rate, momentum=task.momentum, fused=True)
