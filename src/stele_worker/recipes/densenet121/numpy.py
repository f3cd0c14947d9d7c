"""DenseNet-121 in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

import numpy

from stele_worker import tasks
from stele_worker.oracle import (
    adam,
    average_pool,
    average_windows,
    batch_norm,
    convolution,
    dense,
    load_weights,
    max_pool,
    normalise,
    relu,
    sigmoid_cross_entropy,
    zero_parameters,
)
from stele_worker.tasks.densenet121 import layers

LAYOUT = "NHWC"


def network(task):
    return zero_parameters({name: array.shape for name, array in tasks.weights(task).items()})


def load(net, weights):
    return load_weights(net, weights)


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


def forward(net, task, x, *, training, layer_outputs=None):
    layer_outputs = {} if layer_outputs is None else layer_outputs
    x = x.astype(numpy.float64)  # (batch, 224, 224, 3)
    x, stem_conv = convolve(net, "stem.conv", x, stride=2)  # (batch, 112, 112, 64)
    x, stem_norm = activated(net, task, "stem.norm", x, training=training)
    x, pool = max_pool(x, size=3, stride=2, padding=1)  # (batch, 56, 56, 64)
    tape = []
    for name, _ in layers(task):
        apply = transition if name.startswith("transition") else dense_layer
        x, layer_outputs[name], backward = apply(net, task, name, x, training=training)
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


def loss_and_gradients(net, task, x, y):
    logits, backward = forward(net, task, x, training=True)
    loss, cross_entropy = sigmoid_cross_entropy(logits, y)
    d = {}
    backward(cross_entropy(), d)
    return loss, {name: d[name] for name in net if name in d}


def gradients(net, task):
    def run(x, y):
        return loss_and_gradients(dict(net), task, x, y)  # a copy: keep the running statistics

    return run


def training_step(net, task):
    update = adam(
        net, learning_rate=task.learning_rate, beta1=task.beta1, beta2=task.beta2, epsilon=task.epsilon
    )

    def step(x, y):
        loss, d = loss_and_gradients(net, task, x, y)
        update(d)
        return loss

    return step


def inference_step(net, task):
    return lambda x: forward(net, task, x, training=False)[0]


def stored(net):
    return net


def neutral(name, array):
    return array


def activations(net, task):
    def run(x):
        layer_outputs = {}
        forward(net, task, x, training=False, layer_outputs=layer_outputs)
        return layer_outputs

    return run
