"""A stack of dense layers in PyTorch: eager, checkpoints without reentrance."""

import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.checkpoint import checkpoint

from stele_worker.frameworks.torch import autocast, make_training_step, on_device, outputs
from stele_worker.tasks.stack import layer, segments

LAYOUT = None


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


def network(task):
    return Stack(task)


def load(net, weights):
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    return on_device(net)


def predict(net, task, x):
    with autocast(task):
        return net(x).float()


def loss(net, task):
    return lambda x, y: mse_loss(predict(net, task, x), y)


def training_step(net, task):
    optimiser = torch.optim.SGD(net.parameters(), lr=task.learning_rate, momentum=task.momentum, fused=True)
    return make_training_step(net, optimiser, loss(net, task))


def stored(net):
    return dict(net.named_parameters())


def neutral(name, array):
    return array  # PyTorch has the Task's layouts


def activations(net, task):
    names = [layer(branch, number) for branch in range(task.branches) for number in range(task.depth)]
    return outputs(net, names, lambda x: predict(net, task, x))
