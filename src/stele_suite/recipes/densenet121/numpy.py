"""DenseNet-121 in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

import numpy

from stele_suite.oracle import (
    adam,
    average_pool,
    average_windows,
    batch_norm,
    convolution,
    dense,
    max_pool,
    normalise,
    relu,
    sigmoid_cross_entropy,
)
from stele_suite.tasks.densenet121 import layers
from stele_worker.frameworks.numpy.recipe import NumpyRecipe


def convolve(net, name, x, *, stride=1):
    """Apply a convolution; return (value, backward), as all functions up to forward.

    backward(g, d) returns the gradient of x and adds the gradients of the parameters to d.
    """
    x, convolution_backward = convolution(x, net[name + ".weight"], stride=stride)

    def backward(g, d):
        g, d[name + ".weight"], _ = convolution_backward(g)
        return g

    return x, backward


def activated(net, task, name, x, *, training):
    """Apply a batch normalisation and ReLU. Training replaces the statistics in ``net``; inference has no backward."""
    names = [name + part for part in (".weight", ".bias", ".running_mean", ".running_var")]
    scale, shift, mean, variance = [net[one] for one in names]
    if not training:
        return relu(normalise(x, scale, shift, mean, variance, task.norm_epsilon))
    x, norm_backward, (batch_mean, batch_variance) = batch_norm(x, scale, shift, task.norm_epsilon)
    net[names[2]] = (1 - task.statistics) * mean + task.statistics * batch_mean
    net[names[3]] = (1 - task.statistics) * variance + task.statistics * batch_variance
    x, activate = relu(x)

    def backward(g, d):
        g, d[names[0]], d[names[1]] = norm_backward(activate(g))
        return g

    return x, backward


def layer(net, task, name, x, *, training):
    """Return the channels that a dense layer appends to its input."""
    x, norm1 = activated(net, task, name + ".norm1", x, training=training)
    x, conv1 = convolve(net, name + ".conv1", x)
    x, norm2 = activated(net, task, name + ".norm2", x, training=training)
    x, conv2 = convolve(net, name + ".conv2", x)
    return x, lambda g, d: norm1(conv1(norm2(conv2(g, d), d), d), d)


def dense_layer(net, task, name, x, *, training):
    new, layer_backward = layer(net, task, name, x, training=training)
    channels = x.shape[3]

    def backward(g, d):
        return g[..., :channels] + layer_backward(g[..., channels:], d)

    return numpy.concatenate([x, new], axis=3), new, backward


def transition(net, task, name, x, *, training):
    x, norm = activated(net, task, name + ".norm", x, training=training)
    x, conv = convolve(net, name + ".conv", x)
    x, average = average_windows(x)
    return x, x, lambda g, d: norm(conv(average(g), d), d)


class Recipe(NumpyRecipe):
    LAYOUT = "NHWC"

    def forward(self, net, task, x, random=None):
        training = random is not None
        x = x.astype(numpy.float64)  # (batch, 224, 224, 3)
        x, stem_conv = convolve(net, "stem.conv", x, stride=2)  # (batch, 112, 112, 64)
        x, stem_norm = activated(net, task, "stem.norm", x, training=training)
        x, pool = max_pool(x, size=3, stride=2, padding=1)  # (batch, 56, 56, 64)
        tape = []
        for name, _ in layers(task):
            apply = transition if name.startswith("transition") else dense_layer
            x, output, backward = apply(net, task, name, x, training=training)
            self.record(name, output)
            if training:  # a layer keeps large arrays for its backward
                tape.append(backward)
        x, norm = activated(net, task, "norm", x, training=training)  # (batch, 7, 7, 1024)
        x, average = average_pool(x)  # (batch, 1024)
        x, classify = dense(x, net["classifier.weight"], net["classifier.bias"])  # (batch, 14)

        def backward(g, d):
            g, d["classifier.weight"], d["classifier.bias"] = classify(g)
            g = norm(average(g), d)
            for layer_backward in reversed(tape):
                g = layer_backward(g, d)
            return stem_conv(stem_norm(pool(g), d), d)

        return x, backward

    def loss(self, task, output, y):
        return sigmoid_cross_entropy(output, y)

    def optimiser(self, net, task):
        return adam(net, learning_rate=task.learning_rate, beta1=task.beta1, beta2=task.beta2, epsilon=task.epsilon)
