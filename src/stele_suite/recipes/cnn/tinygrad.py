"""CNN on CIFAR-10 in tinygrad: layers of nn, one captured step, channels first, nn.optim.SGD."""

from tinygrad import nn
from tinygrad.nn.state import get_parameters

from stele_worker.frameworks.tinygrad.recipe import TinygradRecipe


class CNN:
    def __init__(self, task):
        self.rates = task.dropout
        self.conv1 = nn.Conv2d(3, 50, 3, padding=1)
        self.conv2 = nn.Conv2d(50, 50, 3, padding=1)
        self.conv3 = nn.Conv2d(50, 100, 3, padding=1)
        self.conv4 = nn.Conv2d(100, 100, 3, padding=1)
        self.dense1 = nn.Linear(6400, 512)
        self.dense2 = nn.Linear(512, 10)

    def __call__(self, x, record):
        x = record("conv1", self.conv1(x)).relu()  # (batch, 50, 32, 32)
        x = record("conv2", self.conv2(x)).max_pool2d().relu().dropout(self.rates[0])  # (batch, 50, 16, 16)
        x = record("conv3", self.conv3(x)).relu()  # (batch, 100, 16, 16)
        x = record("conv4", self.conv4(x)).max_pool2d().relu().dropout(self.rates[1])  # (batch, 100, 8, 8)
        x = record("dense1", self.dense1(x.flatten(1))).relu().dropout(self.rates[2])  # (batch, 512)
        return record("dense2", self.dense2(x))  # (batch, 10)


class Recipe(TinygradRecipe):
    LAYOUT = "NCHW"

    def network(self, task):
        return CNN(task)

    def loss(self, task, output, y):
        return output.sparse_categorical_crossentropy(y)

    def optimiser(self, net, task):
        return nn.optim.SGD(get_parameters(net), lr=task.learning_rate, momentum=task.momentum)
