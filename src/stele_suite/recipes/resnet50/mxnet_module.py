"""ResNet-50 v1.5 in MXNet's symbols: a Module, NCHW."""

import mxnet as mx

from stele_suite.tasks.resnet50 import blocks
from stele_worker.frameworks.mxnet_module.recipe import ModuleRecipe, Network, relu, sgd


def convolution(x, name, channels, size, stride):
    weight, edge = mx.sym.var(name + ".weight"), size // 2
    options = {"kernel": (size, size), "stride": (stride, stride), "pad": (edge, edge), "num_filter": channels}
    return mx.sym.Convolution(x, weight, no_bias=True, **options)


def normalisation(x, task, name):
    # MXNet always updates the running variance by the biased variance, (n - 1) / n of the Task's. Training does not use
    # it, so it computes the same
    return mx.sym.BatchNorm(
        x,
        gamma=mx.sym.var(name + ".weight"),
        beta=mx.sym.var(name + ".bias"),
        moving_mean=mx.sym.var(name + ".running_mean"),
        moving_var=mx.sym.var(name + ".running_var"),
        eps=task.epsilon,
        momentum=1 - task.statistics,
        fix_gamma=False,  # by default gamma stays 1
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


class Recipe(ModuleRecipe):
    LAYOUT = "NCHW"

    def network(self, task):
        x = mx.sym.var("x")  # (batch, 3, 224, 224)
        x = relu(normalisation(convolution(x, "conv1", 64, 7, 2), task, "bn1"))  # (batch, 64, 112, 112)
        x = mx.sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max")  # (batch, 64, 56, 56)
        for name, inputs, width, stride in blocks():
            x = bottleneck(x, task, name, inputs, width, stride)  # finally (batch, 2048, 7, 7)
        x = mx.sym.flatten(mx.sym.Pooling(x, global_pool=True, pool_type="avg"))  # (batch, 2048)
        weight, bias = mx.sym.var("fc.weight"), mx.sym.var("fc.bias")
        logits = mx.sym.FullyConnected(x, weight, bias, num_hidden=task.classes, flatten=False)  # (batch, 1000)
        return Network(logits, output=x)

    def optimiser(self, net, task):
        return sgd(task)
