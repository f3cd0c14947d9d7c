"""DenseNet-121 in JAX: one jitted step, channels last, weights and optimiser state donated."""

import jax.numpy as jnp
from jax import lax
from jax.nn import log_sigmoid, relu

from stele_worker.frameworks.jax import adam, make_training_step
from stele_worker.layers import outputs
from stele_worker.tasks.densenet121 import blocks

LAYOUT = "NHWC"


def convolution(net, name, x, stride=1):
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
    scale = net["weights"][name + ".weight"] * lax.rsqrt(variance + task.norm_epsilon)
    return ((x - mean) * scale + net["weights"][name + ".bias"]).astype(dtype)


def pool(x):
    window, strides, padding = (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0))
    return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, padding)


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
    kernel, bias = net["weights"]["classifier.weight"], net["weights"]["classifier.bias"]
    return (x @ kernel.astype(x.dtype) + bias.astype(x.dtype)).astype(jnp.float32)  # (batch, 14)


def network(task):
    return {"weights": {}, "running": {}}  # by name: forward computes the layers from them


def load(net, weights):
    for name, array in weights.items():
        if array.ndim == 4:
            array = array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        kind = "running" if ".running_" in name else "weights"
        net[kind][name] = jnp.array(array.T if array.ndim == 2 else array)
    return net


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


def stored(net):
    return {**net["weights"], **net["running"]}


def neutral(name, array):
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T


def activations(net, task):
    return outputs(globals(), ("layer", "transition"), lambda x: forward(net, task, x))
