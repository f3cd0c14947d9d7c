"""A stack of dense layers in PyTorch: eager, checkpoints without reentrance."""

import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.checkpoint import checkpoint

from stele_suite.tasks.stack import layer, segments
from stele_worker.frameworks.torch.recipe import TorchRecipe


class Layer(nn.Linear):
    def forward(self, x):
        return torch.relu(super().forward(x))  # (batch, width)


class Stack(nn.Module):
    def __init__(self, task):
        super().__init__()
        self.segments, self.recomputes = segments(task), task.segment is not None
        stacks = [[Layer(task.width, task.width) for _ in range(task.depth)] for _ in range(task.branches)]
        self.branch = nn.ModuleList([nn.Sequential(*stack) for stack in stacks])

    def compute(self, branch, x):
        for first, *_, last in self.segments:
            part = branch[first : last + 1]
            recomputes = self.recomputes and self.training
            x = checkpoint(part, x, use_reentrant=False) if recomputes else part(x)
        return x

    def forward(self, x):
        return sum(self.compute(branch, x) for branch in self.branch)


class Recipe(TorchRecipe):
    def network(self, task):
        return Stack(task)

    def layers(self, task):
        return [layer(branch, number) for branch in range(task.branches) for number in range(task.depth)]

    def loss(self, task, output, y):
        return mse_loss(output, y)

    def optimiser(self, net, task):
        return torch.optim.SGD(net.parameters(), lr=task.learning_rate, momentum=task.momentum, fused=True)
