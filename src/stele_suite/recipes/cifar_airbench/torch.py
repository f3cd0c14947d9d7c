"""The network of airbench in PyTorch: channels last, Muon beside a fused SGD."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, gelu, max_pool2d, pad

from stele_suite.tasks.cifar_airbench import (
    COEFFICIENTS,
    GROUPS,
    ITERATIONS,
    SMALLEST_NORM,
    convolutions,
    is_filter,
    is_trained,
    learning_rates,
    norm_of,
    rate_and_decay,
)
from stele_worker.frameworks.torch.recipe import TorchRecipe, compiled, image_format


class Airbench(nn.Module):
    def __init__(self, task, memory_format):
        super().__init__()
        self.format = memory_format
        self.whiten = nn.Conv2d(3, 24, 2)
        self.whiten.weight.requires_grad_(False)
        for group in GROUPS:
            self.add_module(group, nn.Module())
        for name, inputs, channels in convolutions(task):
            group, part = name.split(".")
            convolution = nn.Conv2d(inputs, channels, 3, padding=1, bias=False)
            norm = nn.BatchNorm2d(channels, eps=task.epsilon, momentum=task.statistics)
            norm.weight.requires_grad_(False)
            self.get_submodule(group).add_module(part, convolution)
            self.get_submodule(group).add_module(norm_of(part), norm)
        self.linear = nn.Linear(4 * task.width, 10, bias=False)

    def forward(self, x):
        x = x.permute(0, 3, 1, 2).contiguous(memory_format=self.format)  # no copy if channels last
        x = gelu(self.whiten(x))  # (batch, 24, 31, 31)
        for name in GROUPS:  # (batch, 64, 15, 15) to (batch, 256, 3, 3)
            group = self.get_submodule(name)
            x = gelu(group.norm1(max_pool2d(group.conv1(x), 2)))
            x = gelu(group.norm2(group.conv2(x)))
        x = max_pool2d(x, 3).flatten(1)
        return self.linear(x) / x.shape[1]  # (batch, 10)


def is_scale(name):
    return ".norm" in name and name.endswith("weight")


def orthogonal(matrix, dtype):
    """Return a matrix with the singular vectors of ``matrix``, and singular values near 1."""
    x, (a, b, c) = matrix.to(getattr(torch, dtype)), COEFFICIENTS
    x = x / (x.norm() + SMALLEST_NORM)
    wide = x.shape[0] <= x.shape[1]
    x = x if wide else x.T
    for _ in range(ITERATIONS):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x if wide else x.T


class Muon(torch.optim.Optimizer):
    def __init__(self, values, task):
        super().__init__(values, {"lr": task.muon_rate})
        self.task, self.move = task, compiled(self.move_filter, replayed=False)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            # a number would be compiled again, and torch.tensor would wait for the GPU
            rate = torch.full((), group["lr"], device=group["params"][0].device)
            for value in group["params"]:
                if "velocity" not in self.state[value]:
                    self.state[value]["velocity"] = torch.zeros_like(value)
                self.move(value, value.grad, self.state[value]["velocity"], rate)

    def move_filter(self, value, gradient, velocity, rate):
        velocity.mul_(self.task.muon_momentum).add_(gradient)
        gradient = gradient.add(velocity, alpha=self.task.muon_momentum)
        direction = orthogonal(gradient.reshape(len(value), -1), self.task.dtype)
        value.mul_(len(value) ** 0.5 / value.norm()).sub_(rate * direction.view(value.shape))


class Both(torch.optim.Optimizer):
    """Muon for the filters and SGD for the rest, with the learning rates of each step."""

    def __init__(self, net, task):
        trained = {name: value for name, value in net.named_parameters() if is_trained(name) and not is_scale(name)}
        groups = []
        for name, value in trained.items():
            if not is_filter(name):
                rate, decay = rate_and_decay(task, name)
                group = {
                    "params": [value],
                    "weight_decay": decay,
                    "first": rate,
                    "whiten": name == "whiten.bias",
                }
                groups.append(group)
        self.parts = (
            torch.optim.SGD(groups, lr=1.0, momentum=task.momentum, nesterov=True, fused=True),
            Muon([value for name, value in trained.items() if is_filter(name)], task),
        )
        self.muon_rate, self.rates, self.count = task.muon_rate, learning_rates(task).tolist(), 0

    def zero_grad(self):
        for part in self.parts:
            part.zero_grad()

    def step(self):
        now = min(self.count, len(self.rates[0]) - 1)
        self.count += 1
        others, filters = self.parts
        for group in others.param_groups:
            group["lr"] = group["first"] * self.rates[1 if group["whiten"] else 0][now]
        for group in filters.param_groups:
            group["lr"] = self.muon_rate * self.rates[0][now]
        for part in self.parts:
            part.step()


class Recipe(TorchRecipe):
    LAYOUT = "NHWC"

    def network(self, task):
        memory_format = image_format(task)
        return Airbench(task, memory_format).to(memory_format=memory_format)

    def predict(self, net, task, x):
        """Return the mean over six views: the image, moved by a pixel to both sides, and their mirror images."""
        padded = pad(x.permute(0, 3, 1, 2), (1, 1, 1, 1), "reflect").permute(0, 2, 3, 1)
        views = ((x, 1 / 4), (padded[:, :32, :32], 1 / 8), (padded[:, 2:, 2:], 1 / 8))
        return sum(share * self.forward(net, task, x) for view, share in views for x in (view, view.flip(2)))

    def layers(self, task):
        return [norm_of(name) for name, *_ in convolutions(task)]

    def loss(self, task, output, y):
        return cross_entropy(output, y, label_smoothing=task.smoothing)

    def optimiser(self, net, task):
        return Both(net, task)

    def is_of_task(self, name):
        return super().is_of_task(name) and not is_scale(name)
