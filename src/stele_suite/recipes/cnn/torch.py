"""CNN on CIFAR-10 in PyTorch: eager, channels last on a CPU, fused optimiser."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, dropout, max_pool2d, relu

from stele_worker.frameworks.torch.recipe import TorchRecipe, image_format


class CNN(nn.Module):
    def __init__(self, task, memory_format):
        super().__init__()
        self.rates, self.format = task.dropout, memory_format
        self.conv1 = nn.Conv2d(3, 50, 3, padding=1)
        self.conv2 = nn.Conv2d(50, 50, 3, padding=1)
        self.conv3 = nn.Conv2d(50, 100, 3, padding=1)
        self.conv4 = nn.Conv2d(100, 100, 3, padding=1)
        self.dense1 = nn.Linear(6400, 512)
        self.dense2 = nn.Linear(512, 10)

    def forward(self, x):
        x = x.permute(0, 3, 1, 2).contiguous(memory_format=self.format)  # no copy if channels last
        x = relu(self.conv1(x))  # (batch, 50, 32, 32)
        x = relu(max_pool2d(self.conv2(x), 2))  # (batch, 50, 16, 16)
        x = dropout(x, self.rates[0], self.training)
        x = relu(self.conv3(x))  # (batch, 100, 16, 16)
        x = relu(max_pool2d(self.conv4(x), 2))  # (batch, 100, 8, 8)
        x = dropout(x, self.rates[1], self.training)
        x = x.flatten(1)  # (batch, 6400)
        x = dropout(relu(self.dense1(x)), self.rates[2], self.training)
        return self.dense2(x)  # (batch, 10)


class Recipe(TorchRecipe):
    LAYOUT = "NHWC"

    def network(self, task):
        return CNN(task, image_format(task))

    def layers(self, task):
        return ("conv1", "conv2", "conv3", "conv4", "dense1", "dense2")

    def loss(self, task, output, y):
        return cross_entropy(output, y)

    def optimiser(self, net, task):
        return torch.optim.SGD(net.parameters(), lr=task.learning_rate, momentum=task.momentum, fused=True)
