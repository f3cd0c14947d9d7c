"""CNN on CIFAR-10 in JAX: one jitted step, channels last, weights and optimiser state donated."""

import jax.numpy as jnp
from jax import lax
from jax.nn import log_softmax, relu

from stele_worker.frameworks.jax.images import pool_blocks
from stele_worker.frameworks.jax.recipe import JaxRecipe, dropout, keys, sgd


def convolution(net, name, x):
    kernel, bias = net[name + ".weight"].astype(x.dtype), net[name + ".bias"].astype(x.dtype)
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel, (1, 1), ((1, 1), (1, 1)), dimension_numbers=layout) + bias


def dense(net, name, x):
    return x @ net[name + ".weight"].astype(x.dtype) + net[name + ".bias"].astype(x.dtype)


class Recipe(JaxRecipe):
    LAYOUT = "NHWC"

    def forward(self, net, task, x, training=None):
        rates, masks = task.dropout, keys(training, 3)
        x = x.astype(task.dtype)  # (batch, 32, 32, 3)
        x = relu(self.record("conv1", convolution(net, "conv1", x)))  # (batch, 32, 32, 50)
        x = self.record("conv2", convolution(net, "conv2", x))
        x = dropout(relu(pool_blocks(x, 2)), rates[0], next(masks))  # (batch, 16, 16, 50)
        x = relu(self.record("conv3", convolution(net, "conv3", x)))  # (batch, 16, 16, 100)
        x = self.record("conv4", convolution(net, "conv4", x))
        x = dropout(relu(pool_blocks(x, 2)), rates[1], next(masks))  # (batch, 8, 8, 100)
        x = x.reshape(-1, 6400)
        x = dropout(relu(self.record("dense1", dense(net, "dense1", x))), rates[2], next(masks))
        return self.record("dense2", dense(net, "dense2", x)).astype(jnp.float32)  # (batch, 10)

    def loss(self, task, output, y):
        return -jnp.take_along_axis(log_softmax(output), y[:, None], axis=1).mean()

    def optimiser(self, net, task):
        return sgd(task)

    def layout(self, name, array):
        if array.ndim == 4:
            return array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        if name == "dense1.weight":  # from channel, row, column to the order of flattening here
            array = array.reshape(512, 100, 8, 8).transpose(0, 2, 3, 1).reshape(512, 6400)
        return array.T if array.ndim == 2 else array
