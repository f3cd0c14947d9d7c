"""ResNet-50 v1.5 in PyTorch: eager, channels last on a CPU, fused optimiser."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, relu

from stele_suite.tasks.resnet50 import blocks
from stele_worker.frameworks.torch.recipe import TorchRecipe, autocast, image_format


def convolution(inputs, outputs, size, stride):
    return nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, bias=False)


def normalisation(task, channels):
    return nn.BatchNorm2d(channels, eps=task.epsilon, momentum=task.statistics)


class Bottleneck(nn.Module):
    def __init__(self, task, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1 = convolution(inputs, width, 1, 1)
        self.bn1 = normalisation(task, width)
        self.conv2 = convolution(width, width, 3, stride)
        self.bn2 = normalisation(task, width)
        self.conv3 = convolution(width, outputs, 1, 1)
        self.bn3 = normalisation(task, outputs)
        self.downsample = None
        if inputs != outputs:
            self.downsample = nn.Sequential(convolution(inputs, outputs, 1, stride), normalisation(task, outputs))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        x = relu(self.bn1(self.conv1(x)))
        x = relu(self.bn2(self.conv2(x)))
        return relu(self.bn3(self.conv3(x)) + shortcut)


class ResNet50(nn.Module):
    def __init__(self, task, memory_format):
        super().__init__()
        self.format = memory_format
        self.conv1 = convolution(3, 64, 7, 2)
        self.bn1 = normalisation(task, 64)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        for stage in range(1, 5):
            rows = [row[1:] for row in blocks() if row[0].startswith("layer{}.".format(stage))]
            setattr(self, "layer{}".format(stage), nn.Sequential(*[Bottleneck(task, *row) for row in rows]))
        self.fc = nn.Linear(task.features, task.classes)

    def features(self, x):
        x = x.permute(0, 3, 1, 2).contiguous(memory_format=self.format)  # no copy if channels last
        x = self.pool(relu(self.bn1(self.conv1(x))))  # (batch, 64, 56, 56)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))  # (batch, 2048, 7, 7)
        return x.mean((2, 3))  # (batch, 2048)

    def forward(self, x):
        return self.fc(self.features(x))  # (batch, 1000)


class Recipe(TorchRecipe):
    LAYOUT = "NHWC"

    def network(self, task):
        memory_format = image_format(task)
        return ResNet50(task, memory_format).to(memory_format=memory_format)

    def predict(self, net, task, x):
        with autocast(task):
            return net.features(x).float()

    def layers(self, task):
        return ("pool",) + tuple(name for name, *_ in blocks())

    def loss(self, task, output, y):
        return cross_entropy(output, y)

    def optimiser(self, net, task):
        return torch.optim.SGD(net.parameters(), lr=task.learning_rate, momentum=task.momentum, fused=True)
