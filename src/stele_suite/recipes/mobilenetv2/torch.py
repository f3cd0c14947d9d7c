"""MobileNetV2 in PyTorch: eager, channels last on a CPU, fused optimiser."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, dropout, relu6

from stele_suite.tasks.mobilenetv2 import HEAD, STEM, blocks
from stele_worker.frameworks.torch.recipe import TorchRecipe, image_format


class Unit(nn.Module):
    """A convolution and its batch normalisation."""

    def __init__(self, task, inputs, outputs, size=1, stride=1, groups=1):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(outputs, eps=task.epsilon, momentum=task.statistics)

    def forward(self, x):
        return self.norm(self.conv(x))


class Block(nn.Module):
    def __init__(self, task, inputs, width, outputs, stride):
        super().__init__()
        self.adds = stride == 1 and inputs == outputs
        self.expand = Unit(task, inputs, width) if width != inputs else None
        self.depthwise = Unit(task, width, width, 3, stride, groups=width)
        self.project = Unit(task, width, outputs)

    def forward(self, x):
        y = x if self.expand is None else relu6(self.expand(x))
        y = self.project(relu6(self.depthwise(y)))
        return x + y if self.adds else y


class MobileNetV2(nn.Module):
    def __init__(self, task, memory_format):
        super().__init__()
        self.rate, self.format = task.dropout[0], memory_format
        self.stem = Unit(task, 3, STEM, 3, 2)
        for name, *sizes in blocks():
            self.add_module(name, Block(task, *sizes))
            channels = sizes[2]
        self.head = Unit(task, channels, HEAD)
        self.classifier = nn.Linear(HEAD, task.classes)

    def forward(self, x):
        x = x.permute(0, 3, 1, 2).contiguous(memory_format=self.format)  # no copy if channels last
        x = relu6(self.stem(x))  # (batch, 32, 112, 112)
        for name, *_ in blocks():
            x = getattr(self, name)(x)
        x = relu6(self.head(x)).mean((2, 3))  # (batch, 1280), from (batch, 1280, 7, 7)
        return self.classifier(dropout(x, self.rate, self.training))  # (batch, 1000)


class Recipe(TorchRecipe):
    LAYOUT = "NHWC"

    def network(self, task):
        memory_format = image_format(task)
        return MobileNetV2(task, memory_format).to(memory_format=memory_format)

    def layers(self, task):
        return [name for name, *_ in blocks()]

    def loss(self, task, output, y):
        return cross_entropy(output, y)

    def optimiser(self, net, task):
        return torch.optim.SGD(net.parameters(), lr=task.learning_rate, momentum=task.momentum, fused=True)
