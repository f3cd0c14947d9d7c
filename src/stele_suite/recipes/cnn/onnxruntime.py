"""CNN on CIFAR-10 in ONNX Runtime: the exported graph, inference only."""

from onnx import TensorProto

from stele_worker.frameworks.onnxruntime.graphs import node
from stele_worker.frameworks.onnxruntime.recipe import OnnxRecipe


def convolution(net, name, x):
    return node(
        net,
        "Conv",
        x,
        name + ".weight",
        name + ".bias",
        kernel_shape=[3, 3],
        strides=[1, 1],
        pads=[1, 1, 1, 1],
        dilations=[1, 1],
        group=1,
    )


def pool(net, x):
    return node(net, "MaxPool", x, kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 0, 0], ceil_mode=0)


def relu(net, x):
    return node(net, "Relu", x)


def dense(net, name, x):
    return node(net, "Gemm", x, name + ".weight", name + ".bias", alpha=1.0, beta=1.0, transA=0, transB=1)


class Recipe(OnnxRecipe):
    LAYOUT = "NCHW"

    def input(self, task):
        return "images", TensorProto.FLOAT, ("batch", 3, 32, 32)

    def forward(self, net, task, x):
        # an exporter omits dropout
        x = relu(net, convolution(net, "conv1", x))  # (batch, 50, 32, 32)
        x = relu(net, pool(net, convolution(net, "conv2", x)))  # (batch, 50, 16, 16)
        x = relu(net, convolution(net, "conv3", x))  # (batch, 100, 16, 16)
        x = relu(net, pool(net, convolution(net, "conv4", x)))  # (batch, 100, 8, 8)
        x = node(net, "Flatten", x, axis=1)  # (batch, 6400)
        x = relu(net, dense(net, "dense1", x))
        return dense(net, "dense2", x)  # (batch, 10)
