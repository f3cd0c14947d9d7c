"""MobileNetV2 in JAX: one jitted step, channels last, weights and optimiser state donated."""

import jax
import jax.numpy as jnp
from jax.nn import log_softmax, relu6

from stele_worker.frameworks.jax import dropout, make_training_step, sgd
from stele_worker.images.jax import convolution, dense, load, network, neutral, normalisation, stored
from stele_worker.layers import outputs
from stele_worker.tasks.mobilenetv2 import blocks

__all__ = ["LAYOUT", "load", "network", "neutral", "stored"]

LAYOUT = "NHWC"


def unit(net, name, x, task, new_running, stride=1):
    """Apply a convolution, depthwise if its kernels say so, and its batch normalisation."""
    return normalisation(net, name + ".norm", convolution(net, name + ".conv", x, stride), task, new_running)


def block(net, name, x, task, new_running, width, channels, stride):
    y = x
    if width != x.shape[-1]:
        y = relu6(unit(net, name + ".expand", y, task, new_running))
    y = relu6(unit(net, name + ".depthwise", y, task, new_running, stride))
    y = unit(net, name + ".project", y, task, new_running)
    return x + y if stride == 1 and x.shape[-1] == channels else y


def forward(net, task, x, new_running=None, key=None):
    x = x.astype(task.dtype)  # (batch, 224, 224, 3)
    x = relu6(unit(net, "stem", x, task, new_running, 2))  # (batch, 112, 112, 32)
    for name, _, width, channels, stride in blocks():
        x = block(net, name, x, task, new_running, width, channels, stride)
    x = relu6(unit(net, "head", x, task, new_running))  # (batch, 7, 7, 1280)
    x = dropout(x.astype(jnp.float32).mean((1, 2)), task.dropout[0], key).astype(task.dtype)
    return dense(net, "classifier", x)  # (batch, 1000)


def predict(net, task, x):
    return forward(net, task, x)


def loss(net, task):
    def compute(weights, state, x, y):
        (running, key), new_running = state, {}
        key, mask = jax.random.split(key)
        logits = forward({"weights": weights, "running": running}, task, x, new_running, mask)
        value = -jnp.take_along_axis(log_softmax(logits), y[:, None], axis=1).mean()
        return value, (new_running, key)

    return compute


def parts(net, task):
    key = jax.random.key(task.seed, impl="rbg")  # compiles and draws faster than threefry
    return net["weights"], (net["running"], key)


def training_step(net, task):
    def keep(weights, state):
        net.update(weights=weights, running=state[0])

    return make_training_step(loss(net, task), parts(net, task), sgd(task), keep)


def activations(net, task):
    return outputs(globals(), ("block",), lambda x: forward(net, task, x))
