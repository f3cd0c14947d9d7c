"""ResNet-50 v1.5 in JAX: one jitted step, channels last, weights and optimiser state donated."""

import jax.numpy as jnp
from jax import lax
from jax.nn import log_softmax, relu

from stele_suite.tasks.resnet50 import blocks
from stele_worker.frameworks.jax.recipe import JaxRecipe, sgd


def convolution(net, name, x, stride=1):
    kernel = net[name + ".weight"].astype(x.dtype)
    edge = kernel.shape[0] // 2
    padding, layout = ((edge, edge), (edge, edge)), ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel, (stride, stride), padding, dimension_numbers=layout)


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


def pool(x):
    """Return the largest of 3 x 3 pixels, at every second place, padded by one on each side."""
    window, strides, padding = (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0))
    return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, padding)


def bottleneck(net, name, x, task, training, stride):
    shortcut = x
    if name.endswith(".0"):
        shortcut = convolution(net, name + ".downsample.0", x, stride)
        shortcut = normalisation(net, name + ".downsample.1", shortcut, task, training)
    x = relu(normalisation(net, name + ".bn1", convolution(net, name + ".conv1", x), task, training))
    x = relu(normalisation(net, name + ".bn2", convolution(net, name + ".conv2", x, stride), task, training))
    x = normalisation(net, name + ".bn3", convolution(net, name + ".conv3", x), task, training)
    return relu(x + shortcut)


class Recipe(JaxRecipe):
    LAYOUT = "NHWC"

    def features(self, net, task, x, training=None):
        x = x.astype(task.dtype)  # (batch, 224, 224, 3)
        x = normalisation(net, "bn1", convolution(net, "conv1", x, 2), task, training)  # (batch, 112, 112, 64)
        x = pool(relu(x))  # (batch, 56, 56, 64)
        for name, _, _, stride in blocks():
            x = self.record(name, bottleneck(net, name, x, task, training, stride))
        return x.astype(jnp.float32).mean((1, 2))  # (batch, 2048), from (batch, 7, 7, 2048)

    def forward(self, net, task, x, training=None):
        x = self.features(net, task, x, training).astype(task.dtype)
        kernel, bias = net["fc.weight"].astype(x.dtype), net["fc.bias"].astype(x.dtype)
        return (x @ kernel + bias).astype(jnp.float32)  # (batch, 1000)

    def predict(self, net, task, x):
        return self.features(net, task, x)

    def loss(self, task, output, y):
        return -jnp.take_along_axis(log_softmax(output), y[:, None], axis=1).mean()

    def optimiser(self, net, task):
        return sgd(task)

    def layout(self, name, array):
        if array.ndim == 4:
            return array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        return array.T if array.ndim == 2 else array
