"""ResNet-50 v1.5 in ONNX Runtime: the exported graph, inference only; the runtime folds normalisations."""

from onnx import TensorProto

from stele_suite.tasks.resnet50 import blocks
from stele_worker.frameworks.onnxruntime.graphs import node
from stele_worker.frameworks.onnxruntime.recipe import OnnxRecipe


def convolution(net, name, x, size, stride):
    return node(
        net,
        "Conv",
        x,
        name + ".weight",
        kernel_shape=[size, size],
        strides=[stride, stride],
        pads=[size // 2] * 4,
        dilations=[1, 1],
        group=1,
    )


def normalisation(net, name, x, task):
    names = [name + "." + kind for kind in ("weight", "bias", "running_mean", "running_var")]
    return node(net, "BatchNormalization", x, *names, epsilon=task.epsilon, training_mode=0)


def relu(net, x):
    return node(net, "Relu", x)


def bottleneck(net, name, x, task, stride):
    shortcut = x
    if name.endswith(".0"):
        shortcut = convolution(net, name + ".downsample.0", x, 1, stride)
        shortcut = normalisation(net, name + ".downsample.1", shortcut, task)
    x = relu(net, normalisation(net, name + ".bn1", convolution(net, name + ".conv1", x, 1, 1), task))
    x = relu(net, normalisation(net, name + ".bn2", convolution(net, name + ".conv2", x, 3, stride), task))
    x = normalisation(net, name + ".bn3", convolution(net, name + ".conv3", x, 1, 1), task)
    return relu(net, node(net, "Add", x, shortcut))


class Recipe(OnnxRecipe):
    LAYOUT = "NCHW"

    def input(self, task):
        return "images", TensorProto.FLOAT, ("batch", 3, task.image, task.image)

    def predict(self, net, task, x):
        x = convolution(net, "conv1", x, 7, 2)  # (batch, 64, 112, 112)
        x = relu(net, normalisation(net, "bn1", x, task))
        # (batch, 64, 56, 56)
        x = node(net, "MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=0)
        for name, _, _, stride in blocks():
            x = bottleneck(net, name, x, task, stride)
        x = node(net, "GlobalAveragePool", x)  # (batch, 2048, 1, 1), from (batch, 2048, 7, 7)
        return node(net, "Flatten", x, axis=1)  # (batch, 2048)
