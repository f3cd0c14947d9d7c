"""MobileNetV2 in JAX: one jitted step, channels last, weights and optimiser state donated."""

import jax.numpy as jnp
from jax import lax
from jax.nn import log_softmax, relu6

from stele_suite.tasks.mobilenetv2 import blocks
from stele_worker.frameworks.jax.recipe import JaxRecipe, dropout, sgd


def convolution(net, name, x, stride=1):
    """Convolve; channel by channel if the kernels say so."""
    kernel = net[name + ".weight"].astype(x.dtype)
    edge, groups = kernel.shape[0] // 2, x.shape[-1] // kernel.shape[2]
    padding, layout = ((edge, edge), (edge, edge)), ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, kernel, (stride, stride), padding, dimension_numbers=layout, feature_group_count=groups
    )


def normalisation(net, name, x, task, training):
    """Normalise in float32: by the statistics of the batch in training, which receives the running statistics."""
    dtype, x = x.dtype, x.astype(jnp.float32)
    names = name + ".running_mean", name + ".running_var"
    mean, variance = net[names[0]], net[names[1]]
    if training is not None:
        mean = x.mean((0, 1, 2))
        variance = jnp.square(x).mean((0, 1, 2)) - jnp.square(mean)  # one pass over x for both
        count = x.size // x.shape[-1]
        for running, new in zip(names, (mean, variance * count / (count - 1))):
            training.running[running] = (1 - task.statistics) * net[running] + task.statistics * new
    scale = net[name + ".weight"] * lax.rsqrt(variance + task.epsilon)
    return ((x - mean) * scale + net[name + ".bias"]).astype(dtype)


def unit(net, name, x, task, training, stride=1):
    """Apply a convolution and its batch normalisation."""
    return normalisation(net, name + ".norm", convolution(net, name + ".conv", x, stride), task, training)


def block(net, name, x, task, training, width, channels, stride):
    y = x
    if width != x.shape[-1]:
        y = relu6(unit(net, name + ".expand", y, task, training))
    y = relu6(unit(net, name + ".depthwise", y, task, training, stride))
    y = unit(net, name + ".project", y, task, training)
    return x + y if stride == 1 and x.shape[-1] == channels else y


class Recipe(JaxRecipe):
    LAYOUT = "NHWC"

    def forward(self, net, task, x, training=None):
        x = x.astype(task.dtype)  # (batch, 224, 224, 3)
        x = relu6(unit(net, "stem", x, task, training, 2))  # (batch, 112, 112, 32)
        for name, _, width, channels, stride in blocks():
            x = self.record(name, block(net, name, x, task, training, width, channels, stride))
        x = relu6(unit(net, "head", x, task, training))  # (batch, 7, 7, 1280)
        key = None if training is None else training.key
        x = dropout(x.astype(jnp.float32).mean((1, 2)), task.dropout[0], key).astype(task.dtype)
        kernel, bias = net["classifier.weight"].astype(x.dtype), net["classifier.bias"].astype(x.dtype)
        return (x @ kernel + bias).astype(jnp.float32)  # (batch, 1000)

    def loss(self, task, output, y):
        return -jnp.take_along_axis(log_softmax(output), y[:, None], axis=1).mean()

    def optimiser(self, net, task):
        return sgd(task)

    def layout(self, name, array):
        if array.ndim == 4:
            return array.transpose(2, 3, 1, 0)  # (height, width, in / groups, out)
        return array.T if array.ndim == 2 else array
