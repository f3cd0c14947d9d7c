"""CNN on CIFAR-10 in OpenVINO: OpenVINO's operations, compiled for the batch, inference only."""

import numpy
from openvino import opset13 as ops

from stele_worker.frameworks.openvino.recipe import OpenvinoRecipe


def convolution(net, name, x):
    pads = {"pads_begin": [1, 1], "pads_end": [1, 1], "auto_pad": "explicit"}
    x = ops.convolution(x, net[name + ".weight"], strides=[1, 1], dilations=[1, 1], **pads)
    return ops.add(x, net[name + ".bias"])


def pool(x):
    pads = {"pads_begin": [0, 0], "pads_end": [0, 0], "auto_pad": "explicit", "rounding_type": "floor"}
    return ops.max_pool(x, kernel_shape=[2, 2], strides=[2, 2], dilations=[1, 1], **pads).output(0)


def dense(net, name, x):
    x = ops.matmul(x, net[name + ".weight"], transpose_a=False, transpose_b=True)
    return ops.add(x, net[name + ".bias"])


class Recipe(OpenvinoRecipe):
    LAYOUT = "NCHW"

    def input(self, task):
        return ops.parameter([-1, 3, 32, 32], numpy.float32, name="images")

    def forward(self, net, task, x):
        # a network for inference has no dropout
        x = ops.relu(convolution(net, "conv1", x))  # (batch, 50, 32, 32)
        x = ops.relu(pool(convolution(net, "conv2", x)))  # (batch, 50, 16, 16)
        x = ops.relu(convolution(net, "conv3", x))  # (batch, 100, 16, 16)
        x = ops.relu(pool(convolution(net, "conv4", x)))  # (batch, 100, 8, 8)
        x = ops.reshape(x, [-1, 6400], special_zero=False)
        x = ops.relu(dense(net, "dense1", x))
        return dense(net, "dense2", x)  # (batch, 10)

    def layout(self, name, array):
        if name.startswith("conv") and array.ndim == 1:
            return array.reshape(-1, 1, 1)  # a bias is added along the channels
        return array
