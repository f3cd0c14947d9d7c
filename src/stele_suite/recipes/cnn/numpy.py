"""CNN on CIFAR-10 in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

import numpy

from stele_suite.oracle import (
    channels_first,
    convolution,
    dense,
    dropout,
    max_pool,
    relu,
    sgd,
    softmax_cross_entropy,
)
from stele_worker.frameworks.numpy.recipe import NumpyRecipe


class Recipe(NumpyRecipe):
    LAYOUT = "NHWC"

    def forward(self, net, task, x, random=None):
        x = x.astype(numpy.float64)  # (batch, 32, 32, 3)
        x, conv1 = convolution(x, net["conv1.weight"], net["conv1.bias"])  # (batch, 32, 32, 50)
        self.record("conv1", x)
        x, relu1 = relu(x)
        self.record("conv1.relu", x)
        x, conv2 = convolution(x, net["conv2.weight"], net["conv2.bias"])
        self.record("conv2", x)
        x, pool2 = max_pool(x, size=2, stride=2)  # (batch, 16, 16, 50)
        x, relu2 = relu(x)
        x, drop2 = dropout(x, task.dropout[0], random)
        x, conv3 = convolution(x, net["conv3.weight"], net["conv3.bias"])  # (batch, 16, 16, 100)
        self.record("conv3", x)
        x, relu3 = relu(x)
        self.record("conv3.relu", x)
        x, conv4 = convolution(x, net["conv4.weight"], net["conv4.bias"])
        self.record("conv4", x)
        x, pool4 = max_pool(x, size=2, stride=2)  # (batch, 8, 8, 100)
        x, relu4 = relu(x)
        x, drop4 = dropout(x, task.dropout[1], random)
        x, flatten = channels_first(x)  # (batch, 6400)
        x, dense1 = dense(x, net["dense1.weight"], net["dense1.bias"])
        self.record("dense1", x)
        x, relu5 = relu(x)
        self.record("dense1.relu", x)
        x, drop5 = dropout(x, task.dropout[2], random)
        x, dense2 = dense(x, net["dense2.weight"], net["dense2.bias"])  # (batch, 10)
        self.record("dense2", x)

        def backward(g, d):
            g, d["dense2.weight"], d["dense2.bias"] = dense2(g)  # (batch, 512)
            g = relu5(drop5(g))
            g, d["dense1.weight"], d["dense1.bias"] = dense1(g)
            g = flatten(g)  # (batch, 8, 8, 100)
            g = pool4(relu4(drop4(g)))  # (batch, 16, 16, 100)
            g, d["conv4.weight"], d["conv4.bias"] = conv4(g)
            g = relu3(g)
            g, d["conv3.weight"], d["conv3.bias"] = conv3(g)  # (batch, 16, 16, 50)
            g = pool2(relu2(drop2(g)))  # (batch, 32, 32, 50)
            g, d["conv2.weight"], d["conv2.bias"] = conv2(g)
            g = relu1(g)
            g, d["conv1.weight"], d["conv1.bias"] = conv1(g)

        return x, backward

    def loss(self, task, output, y):
        return softmax_cross_entropy(output, y)

    def optimiser(self, net, task):
        return sgd(net, learning_rate=task.learning_rate, momentum=task.momentum)
