"""ResNet-50 v1.5 in JAX: one jitted step, channels last, weights and optimiser state donated."""

import jax.numpy as jnp
from jax.nn import log_softmax, relu

from stele_worker.frameworks.jax import make_training_step, sgd
from stele_worker.images.jax import convolution, dense, load, network, neutral, normalisation, pool, stored
from stele_worker.layers import outputs
from stele_worker.tasks.resnet50 import blocks

__all__ = ["LAYOUT", "load", "network", "neutral", "stored"]

LAYOUT = "NHWC"


def bottleneck(net, name, x, task, new_running, stride):
    shortcut = x
    if name.endswith(".0"):
        shortcut = convolution(net, name + ".downsample.0", x, stride)
        shortcut = normalisation(net, name + ".downsample.1", shortcut, task, new_running)
    x = relu(normalisation(net, name + ".bn1", convolution(net, name + ".conv1", x, 1), task, new_running))
    x = relu(
        normalisation(net, name + ".bn2", convolution(net, name + ".conv2", x, stride), task, new_running)
    )
    return relu(
        normalisation(net, name + ".bn3", convolution(net, name + ".conv3", x, 1), task, new_running)
        + shortcut
    )


def features(net, task, x, new_running=None):
    x = x.astype(task.dtype)  # (batch, 224, 224, 3)
    x = normalisation(net, "bn1", convolution(net, "conv1", x, 2), task, new_running)  # (batch, 112, 112, 64)
    x = pool(relu(x))  # (batch, 56, 56, 64)
    for name, _, _, stride in blocks():
        x = bottleneck(net, name, x, task, new_running, stride)
    return x.astype(jnp.float32).mean((1, 2))  # (batch, 2048), from (batch, 7, 7, 2048)


def forward(net, task, x, new_running):
    x = features(net, task, x, new_running).astype(task.dtype)
    return dense(net, "fc", x)  # (batch, 1000)


def predict(net, task, x):
    return features(net, task, x)


def loss(net, task):
    def compute(weights, running, x, y):
        new_running = {}
        logits = forward({"weights": weights, "running": running}, task, x, new_running)
        return -jnp.take_along_axis(log_softmax(logits), y[:, None], axis=1).mean(), new_running

    return compute


def parts(net, task):
    return net["weights"], net["running"]


def training_step(net, task):
    def keep(weights, running):
        net.update(weights=weights, running=running)

    return make_training_step(loss(net, task), parts(net, task), sgd(task), keep)


def activations(net, task):
    return outputs(globals(), ("bottleneck",), lambda x: features(net, task, x))
