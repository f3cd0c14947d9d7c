"""CNN on CIFAR-10 in JAX: one jitted step, channels last, weights and optimiser state donated."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.nn import log_softmax, relu

from stele_worker.frameworks.jax import dropout, make_training_step, sgd
from stele_worker.images.jax import pool_blocks
from stele_worker.layers import outputs

LAYOUT = "NHWC"


def network(task):
    return {}  # weights by name: forward computes the layers from them


def load(net, weights):
    for name, array in weights.items():
        if array.ndim == 4:
            array = array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        if name == "dense1.weight":  # from channel, row, column to the order of flattening here
            array = array.reshape(512, 100, 8, 8).transpose(0, 2, 3, 1).reshape(512, 6400)
        net[name] = jnp.array(array.T if array.ndim == 2 else array)
    return net


def convolution(net, name, x):
    kernel, bias = net[name + ".weight"].astype(x.dtype), net[name + ".bias"].astype(x.dtype)
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel, (1, 1), ((1, 1), (1, 1)), dimension_numbers=layout) + bias


def dense(net, name, x):
    return x @ net[name + ".weight"].astype(x.dtype) + net[name + ".bias"].astype(x.dtype)


def forward(net, task, x, key=None):
    key2, key4, key5 = (None,) * 3 if key is None else jax.random.split(key, 3)
    x = x.astype(task.dtype)  # (batch, 32, 32, 3)
    x = relu(convolution(net, "conv1", x))  # (batch, 32, 32, 50)
    x = relu(pool_blocks(convolution(net, "conv2", x), 2))  # (batch, 16, 16, 50)
    x = dropout(x, task.dropout[0], key2)
    x = relu(convolution(net, "conv3", x))  # (batch, 16, 16, 100)
    x = relu(pool_blocks(convolution(net, "conv4", x), 2))  # (batch, 8, 8, 100)
    x = dropout(x, task.dropout[1], key4)
    x = x.reshape(-1, 6400)
    x = dropout(relu(dense(net, "dense1", x)), task.dropout[2], key5)
    return dense(net, "dense2", x).astype(jnp.float32)  # (batch, 10)


def predict(net, task, x):
    return forward(net, task, x)


def loss(net, task):
    def compute(weights, key, x, y):
        key, masks = jax.random.split(key)
        logits = forward(weights, task, x, masks)
        return -jnp.take_along_axis(log_softmax(logits), y[:, None], axis=1).mean(), key

    return compute


def parts(net, task):
    return net, jax.random.key(task.seed, impl="rbg")  # compiles and draws faster than threefry


def training_step(net, task):
    return make_training_step(
        loss(net, task), parts(net, task), sgd(task), keep=lambda weights, key: net.update(weights)
    )


def stored(net):
    return net


def neutral(name, array):
    if name == "dense1.weight":
        return array.T.reshape(512, 8, 8, 100).transpose(0, 3, 1, 2).reshape(512, 6400)
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T


def activations(net, task):
    return outputs(globals(), ("convolution", "dense"), lambda x: forward(net, task, x))
