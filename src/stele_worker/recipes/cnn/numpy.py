"""CNN on CIFAR-10 in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

import numpy

from stele_worker.oracle import (
    channels_first,
    convolution,
    dense,
    dropout,
    load_weights,
    max_pool,
    relu,
    sgd,
    softmax_cross_entropy,
    zero_parameters,
)

LAYOUT = "NHWC"


def network(task):
    shapes = {
        "conv1.weight": (50, 3, 3, 3),
        "conv1.bias": (50,),
        "conv2.weight": (50, 50, 3, 3),
        "conv2.bias": (50,),
        "conv3.weight": (100, 50, 3, 3),
        "conv3.bias": (100,),
        "conv4.weight": (100, 100, 3, 3),
        "conv4.bias": (100,),
        "dense1.weight": (512, 6400),
        "dense1.bias": (512,),
        "dense2.weight": (10, 512),
        "dense2.bias": (10,),
    }
    return zero_parameters(shapes)


def load(net, weights):
    return load_weights(net, weights)


def forward(net, task, x, random=None, layer_outputs=None):
    """Return (logits, backward). ``random`` draws dropout in training; ``layer_outputs`` receives layer outputs."""
    layer_outputs = {} if layer_outputs is None else layer_outputs
    x = x.astype(numpy.float64)  # (batch, 32, 32, 3)
    x, conv1 = convolution(x, net["conv1.weight"], net["conv1.bias"])  # (batch, 32, 32, 50)
    layer_outputs["conv1"] = x
    x, relu1 = relu(x)
    layer_outputs["conv1.relu"] = x
    x, conv2 = convolution(x, net["conv2.weight"], net["conv2.bias"])
    layer_outputs["conv2"] = x
    x, pool2 = max_pool(x, size=2, stride=2)  # (batch, 16, 16, 50)
    x, relu2 = relu(x)
    x, drop2 = dropout(x, task.dropout[0], random)
    x, conv3 = convolution(x, net["conv3.weight"], net["conv3.bias"])  # (batch, 16, 16, 100)
    layer_outputs["conv3"] = x
    x, relu3 = relu(x)
    layer_outputs["conv3.relu"] = x
    x, conv4 = convolution(x, net["conv4.weight"], net["conv4.bias"])
    layer_outputs["conv4"] = x
    x, pool4 = max_pool(x, size=2, stride=2)  # (batch, 8, 8, 100)
    x, relu4 = relu(x)
    x, drop4 = dropout(x, task.dropout[1], random)
    x, flatten = channels_first(x)  # (batch, 6400)
    x, dense1 = dense(x, net["dense1.weight"], net["dense1.bias"])
    layer_outputs["dense1"] = x
    x, relu5 = relu(x)
    layer_outputs["dense1.relu"] = x
    x, drop5 = dropout(x, task.dropout[2], random)
    x, dense2 = dense(x, net["dense2.weight"], net["dense2.bias"])  # (batch, 10)
    layer_outputs["dense2"] = x

    def backward(g):
        d = {}
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
        return {name: d[name] for name in net}

    return x, backward


def gradients(net, task):
    random = numpy.random.RandomState(task.seed)

    def run(x, y):
        logits, backward = forward(net, task, x, random)
        loss, cross_entropy = softmax_cross_entropy(logits, y)
        return loss, backward(cross_entropy())

    return run


def training_step(net, task):
    run = gradients(net, task)
    update = sgd(net, learning_rate=task.learning_rate, momentum=task.momentum)

    def step(x, y):
        loss, d = run(x, y)
        update(d)
        return loss

    return step


def inference_step(net, task):
    def step(x):
        logits, _ = forward(net, task, x)
        return logits

    return step


def stored(net):
    return net


def neutral(name, array):
    return array


def activations(net, task):
    def run(x):
        layer_outputs = {}
        forward(net, task, x, layer_outputs=layer_outputs)
        return layer_outputs

    return run
