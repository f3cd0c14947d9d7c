"""DenseNet-121 in JAX: one jitted step, channels last, weights and optimiser state donated."""

import jax.numpy as jnp
from jax import lax
from jax.nn import log_sigmoid, relu

from stele_worker.frameworks.jax import adam, make_training_step
from stele_worker.images.jax import convolution, dense, load, network, neutral, normalisation, pool, stored
from stele_worker.layers import outputs
from stele_worker.tasks.densenet121 import blocks

__all__ = ["LAYOUT", "load", "network", "neutral", "stored"]

LAYOUT = "NHWC"


def layer(net, name, x, task, new_running):
    """Return the channels that a dense layer appends to its input."""
    x = relu(normalisation(net, name + ".norm1", x, task, new_running))
    x = relu(normalisation(net, name + ".norm2", convolution(net, name + ".conv1", x), task, new_running))
    return convolution(net, name + ".conv2", x)


def transition(net, name, x, task, new_running):
    x = convolution(net, name + ".conv", relu(normalisation(net, name + ".norm", x, task, new_running)))
    return lax.reduce_window(x, 0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4


def block(net, name, x, task, new_running, count):
    for number in range(count):
        new = layer(net, "{}.{}".format(name, number), x, task, new_running)
        x = jnp.concatenate([x, new], axis=-1)
    return x if count else transition(net, name, x, task, new_running)


def forward(net, task, x, new_running=None):
    x = convolution(net, "stem.conv", x.astype(task.dtype), 2)  # (batch, 112, 112, 64)
    x = pool(relu(normalisation(net, "stem.norm", x, task, new_running)))  # (batch, 56, 56, 64)
    for name, _, _, count in blocks(task):
        x = block(net, name, x, task, new_running, count)
    x = relu(normalisation(net, "norm", x, task, new_running))  # (batch, 7, 7, 1024)
    x = x.astype(jnp.float32).mean((1, 2)).astype(task.dtype)  # (batch, 1024)
    return dense(net, "classifier", x)  # (batch, 14)


def predict(net, task, x):
    return forward(net, task, x)


def loss(net, task):
    def compute(weights, running, x, y):
        new_running = {}
        logits = forward({"weights": weights, "running": running}, task, x, new_running)
        return -(y * log_sigmoid(logits) + (1 - y) * log_sigmoid(-logits)).mean(), new_running

    return compute


def parts(net, task):
    return net["weights"], net["running"]


def training_step(net, task):
    def keep(weights, running):
        net.update(weights=weights, running=running)

    return make_training_step(loss(net, task), parts(net, task), adam(task), keep)


def activations(net, task):
    return outputs(globals(), ("layer", "transition"), lambda x: forward(net, task, x))
