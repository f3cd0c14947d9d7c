"""CNN on CIFAR-10 in OpenVINO: OpenVINO's operations, compiled for the batch, inference only."""

import numpy
from openvino import opset13 as ops

LAYOUT = "NCHW"


def network(task):
    return {}  # constants by name: forward computes the layers from them


def load(net, weights):
    for name, array in weights.items():
        if name.startswith("conv") and array.ndim == 1:
            array = array.reshape(-1, 1, 1)  # a bias is added along the channels
        net[name] = ops.constant(array)
    return net


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


def forward(net, task, x):
    # a network for inference has no dropout
    x = ops.relu(convolution(net, "conv1", x))  # (batch, 50, 32, 32)
    x = ops.relu(pool(convolution(net, "conv2", x)))  # (batch, 50, 16, 16)
    x = ops.relu(convolution(net, "conv3", x))  # (batch, 100, 16, 16)
    x = ops.relu(pool(convolution(net, "conv4", x)))  # (batch, 100, 8, 8)
    x = ops.reshape(x, [-1, 6400], special_zero=False)
    x = ops.relu(dense(net, "dense1", x))
    return dense(net, "dense2", x)  # (batch, 10)


def inputs(task):
    return ops.parameter([-1, 3, 32, 32], numpy.float32, name="images")


def predict(net, task, x):
    return forward(net, task, x)


def stored(net):
    return net


def neutral(name, array):
    return array.ravel() if name.endswith(".bias") else array  # from (50, 1, 1)
