"""ResNet-50 v1.5 in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

import numpy

from stele_worker.oracle import (
    average_pool,
    batch_norm,
    convolution,
    dense,
    load_weights,
    max_pool,
    normalise,
    relu,
    sgd,
    softmax_cross_entropy,
    zero_parameters,
)
from stele_worker.tasks.resnet50 import blocks, convolutions

LAYOUT = "NHWC"

NORM = (".weight", ".bias", ".running_mean", ".running_var")


def network(task):
    shapes = {}
    for conv, norm, shape in convolutions():
        shapes[conv + ".weight"] = shape
        shapes.update((norm + part, shape[:1]) for part in NORM)
    shapes["fc.weight"] = (task.classes, task.features)
    shapes["fc.bias"] = (task.classes,)
    return zero_parameters(shapes)


def load(net, weights):
    return load_weights(net, weights)


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


def features(net, task, x, *, training, layer_outputs=None):
    layer_outputs = {} if layer_outputs is None else layer_outputs  # of pool and blocks
    x = x.astype(numpy.float64)  # (batch, 224, 224, 3)
    x, unit1 = unit(net, task, "conv1", "bn1", x, stride=2, training=training)  # (batch, 112, 112, 64)
    x, relu1 = relu(x)
    x, pool = max_pool(x, size=3, stride=2, padding=1)  # (batch, 56, 56, 64)
    layer_outputs["pool"] = x
    tape = []
    for name, _, _, stride in blocks():
        x, block = bottleneck(net, task, name, x, stride=stride, training=training)
        layer_outputs[name] = x
        if training:  # a block keeps large arrays for its backward
            tape.append(block)
    x, average = average_pool(x)  # (batch, 7, 7, 2048) to (batch, 2048)

    def backward(g, d):
        g = average(g)
        for block in reversed(tape):
            g = block(g, d)
        return unit1(relu1(pool(g)), d)

    return x, backward


def forward(net, task, x, *, training):
    x, extract = features(net, task, x, training=training)
    x, classify = dense(x, net["fc.weight"], net["fc.bias"])  # (batch, 1000)

    def backward(g, d):
        g, d["fc.weight"], d["fc.bias"] = classify(g)
        return extract(g, d)

    return x, backward


def loss_and_gradients(net, task, x, y):
    logits, backward = forward(net, task, x, training=True)
    loss, cross_entropy = softmax_cross_entropy(logits, y)
    d = {}
    backward(cross_entropy(), d)
    return loss, {name: d[name] for name in net if name in d}


def gradients(net, task):
    def run(x, y):
        return loss_and_gradients(dict(net), task, x, y)  # a copy: keep the running statistics

    return run


def training_step(net, task):
    update = sgd(net, learning_rate=task.learning_rate, momentum=task.momentum)

    def step(x, y):
        loss, d = loss_and_gradients(net, task, x, y)
        update(d)
        return loss

    return step


def inference_step(net, task):
    def step(x):
        value, _ = features(net, task, x, training=False)
        return value

    return step


def stored(net):
    return net


def neutral(name, array):
    return array


def activations(net, task):
    def run(x):
        layer_outputs = {}
        features(net, task, x, training=False, layer_outputs=layer_outputs)
        return layer_outputs

    return run
