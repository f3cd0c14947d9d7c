"""MobileNetV2 in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

import numpy

from stele_suite.oracle import (
    average_pool,
    batch_norm,
    convolution,
    dense,
    depthwise_convolution,
    dropout,
    normalise,
    relu6,
    sgd,
    softmax_cross_entropy,
)
from stele_suite.tasks.mobilenetv2 import blocks
from stele_worker.frameworks.numpy.recipe import NumpyRecipe

NORM = (".norm.weight", ".norm.bias", ".norm.running_mean", ".norm.running_var")


def unit(net, task, name, x, *, stride=1, training):
    """Apply a convolution and its batch normalisation; return (value, backward), as all functions up to forward.

    backward(g, d) returns the gradient of x and adds the gradients of the parameters to d. Training replaces the
    running statistics in ``net``; inference has no backward.
    """
    convolve = depthwise_convolution if name.endswith("depthwise") else convolution
    x, convolution_backward = convolve(x, net[name + ".conv.weight"], stride=stride)
    scale, shift, mean, variance = [net[name + part] for part in NORM]
    if not training:
        return normalise(x, scale, shift, mean, variance, task.epsilon), None
    x, norm_backward, (batch_mean, batch_variance) = batch_norm(x, scale, shift, task.epsilon)
    net[name + NORM[2]] = (1 - task.statistics) * mean + task.statistics * batch_mean
    net[name + NORM[3]] = (1 - task.statistics) * variance + task.statistics * batch_variance

    def backward(g, d):
        g, d[name + NORM[0]], d[name + NORM[1]] = norm_backward(g)
        g, d[name + ".conv.weight"], *_ = convolution_backward(g)
        return g

    return x, backward


def activated(net, task, name, x, *, stride=1, training):
    x, unit_backward = unit(net, task, name, x, stride=stride, training=training)
    x, activate = relu6(x)
    return x, lambda g, d: unit_backward(activate(g), d)


def block(net, task, name, x, width, outputs, stride, *, training):
    inputs, expand = x, lambda g, d: g
    if width != x.shape[3]:
        x, expand = activated(net, task, name + ".expand", x, training=training)
    x, separate = activated(net, task, name + ".depthwise", x, stride=stride, training=training)
    x, project = unit(net, task, name + ".project", x, training=training)
    adds = stride == 1 and inputs.shape[3] == outputs

    def backward(g, d):
        g_inputs = expand(separate(project(g, d), d), d)
        return g + g_inputs if adds else g_inputs

    return x + inputs if adds else x, backward


class Recipe(NumpyRecipe):
    LAYOUT = "NHWC"

    def forward(self, net, task, x, random=None):
        training = random is not None
        x = x.astype(numpy.float64)  # (batch, 224, 224, 3)
        x, stem = activated(net, task, "stem", x, stride=2, training=training)  # (batch, 112, 112, 32)
        tape = []
        for name, _, width, outputs, stride in blocks():
            x, block_backward = block(net, task, name, x, width, outputs, stride, training=training)
            self.record(name, x)
            if training:  # a block keeps large arrays for its backward
                tape.append(block_backward)
        x, head = activated(net, task, "head", x, training=training)  # (batch, 7, 7, 1280)
        x, average = average_pool(x)  # (batch, 1280)
        x, drop = dropout(x, task.dropout[0], random)
        x, classify = dense(x, net["classifier.weight"], net["classifier.bias"])  # (batch, 1000)

        def backward(g, d):
            g, d["classifier.weight"], d["classifier.bias"] = classify(g)
            g = head(average(drop(g)), d)
            for block_backward in reversed(tape):
                g = block_backward(g, d)
            return stem(g, d)

        return x, backward

    def loss(self, task, output, y):
        return softmax_cross_entropy(output, y)

    def optimiser(self, net, task):
        return sgd(net, learning_rate=task.learning_rate, momentum=task.momentum)
