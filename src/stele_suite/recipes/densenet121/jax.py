"""DenseNet-121 in JAX: one jitted step, channels last, weights and optimiser state donated."""

import jax.numpy as jnp
from jax import lax
from jax.nn import log_sigmoid, relu

from stele_suite.tasks.densenet121 import blocks
from stele_worker.frameworks.jax.recipe import JaxRecipe, adam


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
    scale = net[name + ".weight"] * lax.rsqrt(variance + task.norm_epsilon)
    return ((x - mean) * scale + net[name + ".bias"]).astype(dtype)


def pool(x):
    """Return the largest of 3 x 3 pixels, at every second place, padded by one on each side."""
    window, strides, padding = (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0))
    return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, padding)


def layer(net, name, x, task, training):
    """Return the channels that a dense layer appends to its input."""
    x = relu(normalisation(net, name + ".norm1", x, task, training))
    x = relu(normalisation(net, name + ".norm2", convolution(net, name + ".conv1", x), task, training))
    return convolution(net, name + ".conv2", x)


def transition(net, name, x, task, training):
    x = convolution(net, name + ".conv", relu(normalisation(net, name + ".norm", x, task, training)))
    return lax.reduce_window(x, 0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4


class Recipe(JaxRecipe):
    LAYOUT = "NHWC"

    def block(self, net, name, x, task, training, count):
        if not count:
            return self.record(name, transition(net, name, x, task, training))
        for number in range(count):
            part = "{}.{}".format(name, number)
            x = jnp.concatenate([x, self.record(part, layer(net, part, x, task, training))], axis=-1)
        return x

    def forward(self, net, task, x, training=None):
        x = convolution(net, "stem.conv", x.astype(task.dtype), 2)  # (batch, 112, 112, 64)
        x = pool(relu(normalisation(net, "stem.norm", x, task, training)))  # (batch, 56, 56, 64)
        for name, _, _, count in blocks(task):
            x = self.block(net, name, x, task, training, count)
        x = relu(normalisation(net, "norm", x, task, training))  # (batch, 7, 7, 1024)
        x = x.astype(jnp.float32).mean((1, 2)).astype(task.dtype)  # (batch, 1024)
        kernel, bias = net["classifier.weight"].astype(x.dtype), net["classifier.bias"].astype(x.dtype)
        return (x @ kernel + bias).astype(jnp.float32)  # (batch, 14)

    def loss(self, task, output, y):
        return -(y * log_sigmoid(output) + (1 - y) * log_sigmoid(-output)).mean()

    def optimiser(self, net, task):
        return adam(task)

    def layout(self, name, array):
        if array.ndim == 4:
            return array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        return array.T if array.ndim == 2 else array
