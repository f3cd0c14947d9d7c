"""ResNet-50 v1.5 in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

import numpy

from stele_suite.oracle import (
    average_pool,
    batch_norm,
    convolution,
    dense,
    max_pool,
    normalise,
    relu,
    sgd,
    softmax_cross_entropy,
)
from stele_suite.tasks.resnet50 import blocks
from stele_worker.frameworks.numpy.recipe import NumpyRecipe

NORM = (".weight", ".bias", ".running_mean", ".running_var")


def unit(net, task, conv, norm, x, *, stride, training):
    """Apply a convolution and its batch normalisation; return (value, backward), as all functions up to forward.

    backward(g, d) returns the gradient of x and adds the gradients of the parameters to d. Training replaces the
    running statistics in ``net``; inference has no backward.
    """
    x, convolve = convolution(x, net[conv + ".weight"], stride=stride)
    scale, shift, mean, variance = [net[norm + part] for part in NORM]
    if not training:
        return normalise(x, scale, shift, mean, variance, task.epsilon), None
    x, normalise_backward, (batch_mean, batch_variance) = batch_norm(x, scale, shift, task.epsilon)
    net[norm + ".running_mean"] = (1 - task.statistics) * mean + task.statistics * batch_mean
    net[norm + ".running_var"] = (1 - task.statistics) * variance + task.statistics * batch_variance

    def backward(g, d):
        g, d[norm + ".weight"], d[norm + ".bias"] = normalise_backward(g)
        g, d[conv + ".weight"], _ = convolve(g)
        return g

    return x, backward


def bottleneck(net, task, name, x, *, stride, training):
    shortcut, downsample = x, lambda g, d: g
    if name + ".downsample.0.weight" in net:
        shortcut, downsample = unit(
            net, task, name + ".downsample.0", name + ".downsample.1", x, stride=stride, training=training
        )
    x, unit1 = unit(net, task, name + ".conv1", name + ".bn1", x, stride=1, training=training)
    x, relu1 = relu(x)
    x, unit2 = unit(net, task, name + ".conv2", name + ".bn2", x, stride=stride, training=training)
    x, relu2 = relu(x)
    x, unit3 = unit(net, task, name + ".conv3", name + ".bn3", x, stride=1, training=training)
    x, relu3 = relu(x + shortcut)

    def backward(g, d):
        g = relu3(g)
        g_shortcut = downsample(g, d)
        g = relu2(unit3(g, d))
        g = relu1(unit2(g, d))
        return unit1(g, d) + g_shortcut

    return x, backward


class Recipe(NumpyRecipe):
    LAYOUT = "NHWC"

    def features(self, net, task, x, *, training):
        x = x.astype(numpy.float64)  # (batch, 224, 224, 3)
        x, unit1 = unit(net, task, "conv1", "bn1", x, stride=2, training=training)  # (batch, 112, 112, 64)
        x, relu1 = relu(x)
        x, pool = max_pool(x, size=3, stride=2, padding=1)  # (batch, 56, 56, 64)
        self.record("pool", x)
        tape = []
        for name, _, _, stride in blocks():
            x, block = bottleneck(net, task, name, x, stride=stride, training=training)
            self.record(name, x)
            if training:  # a block keeps large arrays for its backward
                tape.append(block)
        x, average = average_pool(x)  # (batch, 7, 7, 2048) to (batch, 2048)

        def backward(g, d):
            g = average(g)
            for block in reversed(tape):
                g = block(g, d)
            return unit1(relu1(pool(g)), d)

        return x, backward

    def forward(self, net, task, x, random=None):
        x, extract = self.features(net, task, x, training=random is not None)
        x, classify = dense(x, net["fc.weight"], net["fc.bias"])  # (batch, 1000)

        def backward(g, d):
            g, d["fc.weight"], d["fc.bias"] = classify(g)
            return extract(g, d)

        return x, backward

    def predict(self, net, task, x):
        return self.features(net, task, x, training=False)[0]

    def loss(self, task, output, y):
        return softmax_cross_entropy(output, y)

    def optimiser(self, net, task):
        return sgd(net, learning_rate=task.learning_rate, momentum=task.momentum)
