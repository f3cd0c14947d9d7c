"""CNN on CIFAR-10 in Paddle 1: imperative training, Paddle Inference with MKL-DNN, channels first."""

import paddle.fluid as fluid
from paddle.fluid.dygraph import Conv2D, Linear, Pool2D
from paddle.fluid.layers import mean, relu, reshape, softmax_with_cross_entropy

from stele_worker.frameworks.paddle1.recipe import Paddle1Recipe, drop, momentum


class CNN(fluid.dygraph.Layer):
    def __init__(self, task):
        super().__init__()
        self.rates = task.dropout
        self.conv1 = Conv2D(3, 50, 3, stride=1, padding=1)
        self.conv2 = Conv2D(50, 50, 3, stride=1, padding=1)
        self.conv3 = Conv2D(50, 100, 3, stride=1, padding=1)
        self.conv4 = Conv2D(100, 100, 3, stride=1, padding=1)
        self.pool = Pool2D(2, pool_type="max", pool_stride=2, pool_padding=0)
        self.dense1 = Linear(6400, 512)
        self.dense2 = Linear(512, 10)

    def forward(self, x):
        x = relu(self.conv1(x))  # (batch, 50, 32, 32), from (batch, 3, 32, 32)
        x = relu(self.pool(self.conv2(x)))  # (batch, 50, 16, 16)
        x = drop(x, self.rates[0], self.training)
        x = relu(self.conv3(x))  # (batch, 100, 16, 16)
        x = relu(self.pool(self.conv4(x)))  # (batch, 100, 8, 8)
        x = drop(x, self.rates[1], self.training)
        x = reshape(x, (-1, 6400))
        x = drop(relu(self.dense1(x)), self.rates[2], self.training)  # (batch, 512)
        return self.dense2(x)  # (batch, 10)


class Recipe(Paddle1Recipe):
    LAYOUT = "NCHW"

    def network(self, task):
        return CNN(task)

    def layers(self, task):
        return ("conv1", "conv2", "conv3", "conv4", "dense1", "dense2")

    def loss(self, task, output, y):
        return mean(softmax_with_cross_entropy(output, y))

    def optimiser(self, net, task):
        return momentum(net, task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 else array  # dense: (in, out)
