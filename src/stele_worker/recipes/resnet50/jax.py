"""ResNet-50 v1.5 in JAX: one jitted step, channels last, weights and optimiser state donated."""

import jax.numpy as jnp
from jax import lax
from jax.nn import log_softmax, relu

from stele_worker.frameworks.jax import make_training_step, sgd
from stele_worker.layers import outputs
from stele_worker.tasks.resnet50 import blocks

LAYOUT = "NHWC"


def convolution(net, name, x, stride):
    kernel = net["weights"][name + ".weight"].astype(x.dtype)
    edge = kernel.shape[0] // 2
    padding, layout = ((edge, edge), (edge, edge)), ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel, (stride, stride), padding, dimension_numbers=layout)


def normalisation(net, name, x, task, new_running):
    """Normalise in float32. ``new_running`` is None in inference; in training it receives the running statistics."""
    dtype, x = x.dtype, x.astype(jnp.float32)
    names = name + ".running_mean", name + ".running_var"
    mean, variance = net["running"][names[0]], net["running"][names[1]]
    if new_running is not None:
        mean = x.mean((0, 1, 2))
        variance = jnp.square(x).mean((0, 1, 2)) - jnp.square(mean)  # one pass over x for both
        count = x.size // x.shape[-1]
        for running, new in zip(names, (mean, variance * count / (count - 1))):
            new_running[running] = (1 - task.statistics) * net["running"][running] + task.statistics * new
    scale = net["weights"][name + ".weight"] * lax.rsqrt(variance + task.epsilon)
    return ((x - mean) * scale + net["weights"][name + ".bias"]).astype(dtype)


def pool(x):
    window, strides, padding = (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0))
    return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, padding)


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


def network(task):
    return {"weights": {}, "running": {}}  # by name: features computes the layers from them


def load(net, weights):
    for name, array in weights.items():
        if array.ndim == 4:
            array = array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        kind = "running" if ".running_" in name else "weights"
        net[kind][name] = jnp.array(array.T if array.ndim == 2 else array)
    return net


def forward(net, task, x, new_running):
    x = features(net, task, x, new_running).astype(task.dtype)
    kernel, bias = net["weights"]["fc.weight"], net["weights"]["fc.bias"]
    return (x @ kernel.astype(x.dtype) + bias.astype(x.dtype)).astype(jnp.float32)  # (batch, 1000)


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


def stored(net):
    return {**net["weights"], **net["running"]}


def neutral(name, array):
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T


def activations(net, task):
    return outputs(globals(), ("bottleneck",), lambda x: features(net, task, x))
