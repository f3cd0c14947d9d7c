"""DenseNet-121 in PyTorch: eager, channels last on a CPU, fused optimiser."""

import torch
from torch import nn
from torch.nn.functional import avg_pool2d, binary_cross_entropy_with_logits, relu

from stele_suite.tasks.densenet121 import blocks, layers
from stele_worker.frameworks.torch.recipe import TorchRecipe, image_format


def convolution(inputs, outputs, size, stride=1):
    return nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, bias=False)


def normalisation(task, channels):
    return nn.BatchNorm2d(channels, eps=task.norm_epsilon, momentum=task.statistics)


class Layer(nn.Module):
    """Return the channels that a dense layer appends to its input."""

    def __init__(self, task, inputs):
        super().__init__()
        self.norm1 = normalisation(task, inputs)
        self.conv1 = convolution(inputs, 4 * task.growth, 1)
        self.norm2 = normalisation(task, 4 * task.growth)
        self.conv2 = convolution(4 * task.growth, task.growth, 3)

    def forward(self, x):
        return self.conv2(relu(self.norm2(self.conv1(relu(self.norm1(x))))))


class Block(nn.ModuleList):
    def forward(self, x):
        for layer in self:
            x = torch.cat((x, layer(x)), 1)
        return x


class Transition(nn.Module):
    def __init__(self, task, inputs, outputs):
        super().__init__()
        self.norm = normalisation(task, inputs)
        self.conv = convolution(inputs, outputs, 1)

    def forward(self, x):
        return avg_pool2d(self.conv(relu(self.norm(x))), 2)


class DenseNet121(nn.Module):
    def __init__(self, task, memory_format):
        super().__init__()
        self.format, self.blocks = memory_format, [name for name, *_ in blocks(task)]
        self.stem = nn.ModuleDict(
            {"conv": convolution(3, 2 * task.growth, 7, 2), "norm": normalisation(task, 2 * task.growth)}
        )
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        for name, inputs, channels, count in blocks(task):
            rows = [Layer(task, inputs + number * task.growth) for number in range(count)]
            self.add_module(name, Block(rows) if count else Transition(task, inputs, channels))
        self.norm = normalisation(task, channels)
        self.classifier = nn.Linear(channels, task.labels)

    def forward(self, x):
        x = x.permute(0, 3, 1, 2).contiguous(memory_format=self.format)  # no copy if channels last
        x = self.pool(relu(self.stem["norm"](self.stem["conv"](x))))  # (batch, 64, 56, 56)
        for name in self.blocks:
            x = getattr(self, name)(x)
        x = relu(self.norm(x)).mean((2, 3))  # (batch, 1024), from (batch, 1024, 7, 7)
        return self.classifier(x)  # (batch, 14)


class Recipe(TorchRecipe):
    LAYOUT = "NHWC"

    def network(self, task):
        memory_format = image_format(task)
        return DenseNet121(task, memory_format).to(memory_format=memory_format)

    def layers(self, task):
        return [name for name, _ in layers(task)]

    def loss(self, task, output, y):
        return binary_cross_entropy_with_logits(output, y)

    def optimiser(self, net, task):
        betas = task.beta1, task.beta2
        return torch.optim.Adam(net.parameters(), lr=task.learning_rate, betas=betas, eps=task.epsilon, fused=True)
