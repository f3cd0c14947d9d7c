"""ResNet-50 v1.5 in MXNet's symbols: a Module, NCHW."""

import mxnet as mx

from stele_worker.frameworks.mxnet_module import (
    arrays,
    bind_for_training,
    cross_entropy,
    put,
    relu,
    with_softmax_output,
)
from stele_worker.tasks.resnet50 import blocks

LAYOUT = "NCHW"


def convolution(x, name, channels, size, stride):
    return mx.sym.Convolution(
        x,
        mx.sym.var(name + ".weight"),
        kernel=(size, size),
        stride=(stride, stride),
        pad=(size // 2, size // 2),
        num_filter=channels,
        no_bias=True,
    )


def normalisation(x, task, name):
    # MXNet always updates the running variance by the biased variance, (n - 1) / n of the Task's. Training
    # does not use it, so it computes the same
    return mx.sym.BatchNorm(
        x,
        gamma=mx.sym.var(name + ".weight"),
        beta=mx.sym.var(name + ".bias"),
        moving_mean=mx.sym.var(name + ".running_mean"),
        moving_var=mx.sym.var(name + ".running_var"),
        eps=task.epsilon,
        momentum=1 - task.statistics,
        fix_gamma=False,  # by default gamma stays 1
        use_global_stats=False,
        axis=1,
    )


def bottleneck(x, task, name, inputs, width, stride):
    outputs = 4 * width
    shortcut = x
    if inputs != outputs:
        shortcut = convolution(x, name + ".downsample.0", outputs, 1, stride)
        shortcut = normalisation(shortcut, task, name + ".downsample.1")
    x = relu(normalisation(convolution(x, name + ".conv1", width, 1, 1), task, name + ".bn1"))
    x = relu(normalisation(convolution(x, name + ".conv2", width, 3, stride), task, name + ".bn2"))
    x = normalisation(convolution(x, name + ".conv3", outputs, 1, 1), task, name + ".bn3")
    return relu(x + shortcut)


def network(task):
    x = mx.sym.var("x")  # (batch, 3, 224, 224)
    x = relu(normalisation(convolution(x, "conv1", 64, 7, 2), task, "bn1"))  # (batch, 64, 112, 112)
    x = mx.sym.Pooling(
        x, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max", pooling_convention="valid"
    )  # (batch, 64, 56, 56)
    for name, inputs, width, stride in blocks():
        x = bottleneck(x, task, name, inputs, width, stride)  # finally (batch, 2048, 7, 7)
    x = mx.sym.flatten(mx.sym.Pooling(x, global_pool=True, pool_type="avg"))  # (batch, 2048)
    weight, bias = mx.sym.var("fc.weight"), mx.sym.var("fc.bias")
    logits = mx.sym.FullyConnected(
        x, weight, bias, num_hidden=task.classes, no_bias=False, flatten=False
    )  # (batch, 1000)
    return {"features": x, "logits": logits, "arrays": ({}, {}), "module": None}


def load(net, weights):
    parameters, statistics = net["arrays"]
    for name, array in weights.items():
        group = statistics if ".running_" in name else parameters
        group[name] = put(array)
    return net


OUTPUT = "features"  # the symbol that inference computes


def training_step(net, task):
    module = None

    def step(x, y):
        nonlocal module
        if module is None:
            # MXNet has the learning rate inside the velocity, which is equivalent at a constant rate
            optimiser = mx.optimizer.SGD(
                learning_rate=task.learning_rate, momentum=task.momentum, wd=0.0, rescale_grad=1 / len(x)
            )
            module = bind_for_training(net, with_softmax_output(net["logits"]), optimiser, x, y)
        module.forward_backward(mx.io.DataBatch([x], [y]))
        module.update()
        return cross_entropy(module.get_outputs()[0], y)

    return step


def stored(net):
    parameters, statistics = arrays(net)
    return dict(parameters, **statistics)


def neutral(name, array):
    return array  # MXNet has the Task's layouts
