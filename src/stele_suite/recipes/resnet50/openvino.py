"""ResNet-50 v1.5 in OpenVINO: OpenVINO's operations, compiled for the batch, inference only."""

import numpy
from openvino import opset13 as ops

from stele_suite.tasks.resnet50 import blocks
from stele_worker.frameworks.openvino.recipe import OpenvinoRecipe


def convolution(net, name, x, stride):
    kernel = net[name + ".weight"]
    edge = kernel.shape[3] // 2
    pads = {"pads_begin": [edge, edge], "pads_end": [edge, edge], "auto_pad": "explicit"}
    return ops.convolution(x, kernel, strides=[stride, stride], dilations=[1, 1], **pads)


def normalisation(net, name, x, task):
    scale, offset = net[name + ".weight"], net[name + ".bias"]
    mean, variance = net[name + ".running_mean"], net[name + ".running_var"]
    return ops.batch_norm_inference(x, scale, offset, mean, variance, task.epsilon)


def pool(x):
    pads = {"pads_begin": [1, 1], "pads_end": [1, 1], "auto_pad": "explicit", "rounding_type": "floor"}
    return ops.max_pool(x, kernel_shape=[3, 3], strides=[2, 2], dilations=[1, 1], **pads).output(0)


def bottleneck(net, name, x, task, stride):
    shortcut = x
    if name.endswith(".0"):
        shortcut = convolution(net, name + ".downsample.0", x, stride)
        shortcut = normalisation(net, name + ".downsample.1", shortcut, task)
    x = ops.relu(normalisation(net, name + ".bn1", convolution(net, name + ".conv1", x, 1), task))
    x = ops.relu(normalisation(net, name + ".bn2", convolution(net, name + ".conv2", x, stride), task))
    x = normalisation(net, name + ".bn3", convolution(net, name + ".conv3", x, 1), task)
    return ops.relu(ops.add(x, shortcut))


class Recipe(OpenvinoRecipe):
    LAYOUT = "NCHW"

    def input(self, task):
        return ops.parameter([-1, 3, task.image, task.image], numpy.float32, name="images")

    def predict(self, net, task, x):
        x = ops.relu(normalisation(net, "bn1", convolution(net, "conv1", x, 2), task))  # (batch, 64, 112, 112)
        x = pool(x)  # (batch, 64, 56, 56)
        for name, _, _, stride in blocks():
            x = bottleneck(net, name, x, task, stride)
        return ops.reduce_mean(x, [2, 3], keep_dims=False)  # (batch, 2048), from (batch, 2048, 7, 7)
