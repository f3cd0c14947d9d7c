"""The network of airbench in JAX: one jitted step, channels last, weights and optimiser state donated."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.nn import gelu, log_softmax

from stele_worker.frameworks.jax import Optimiser, make_training_step
from stele_worker.images.jax import pool_blocks
from stele_worker.layers import outputs
from stele_worker.tasks.cifar_airbench import (
    COEFFICIENTS,
    GROUPS,
    ITERATIONS,
    SMALLEST_NORM,
    is_filter,
    is_trained,
    learning_rates,
    norm_of,
    rate_and_decay,
)

LAYOUT = "NHWC"


def network(task):
    return {"weights": {}, "others": {}}  # by name; others are running statistics and the whitening filters


def load(net, weights):
    for name, array in weights.items():
        if array.ndim == 4:
            array = array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        net["weights" if is_trained(name) else "others"][name] = jnp.array(
            array.T if array.ndim == 2 else array
        )
    return net


def convolution(x, kernel, padding="SAME"):
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel.astype(x.dtype), (1, 1), padding, dimension_numbers=layout)


def normalise(net, name, x, task, new):
    """Normalise in float32. In training ``new`` receives the running statistics."""
    names = name + ".running_mean", name + ".running_var"
    mean, variance = net["others"][names[0]], net["others"][names[1]]
    dtype, x = x.dtype, x.astype(jnp.float32)
    if new is not None:
        mean, variance, count = x.mean((0, 1, 2)), x.var((0, 1, 2)), x.size // x.shape[3]
        for running, statistic in zip(names, (mean, variance * count / (count - 1))):
            new[running] = net["others"][running] + task.statistics * (statistic - net["others"][running])
    x = (x - mean) * lax.rsqrt(variance + task.epsilon) + net["weights"][name + ".bias"]
    return x.astype(dtype)


def layer(net, name, x, task, new):
    """Apply a convolution, a pool if it is the first of its group, the normalisation and GELU."""
    x = convolution(x, net["weights"][name + ".weight"])
    x = pool_blocks(x, 2) if name.endswith("conv1") else x
    return gelu(normalise(net, norm_of(name), x, task, new), approximate=False)


def forward(net, task, x, new=None):
    x = x.astype(task.dtype)  # (batch, 32, 32, 3)
    x = convolution(x, net["others"]["whiten.weight"], "VALID") + net["weights"]["whiten.bias"].astype(
        x.dtype
    )
    x = gelu(x, approximate=False)  # (batch, 31, 31, 24)
    for group in GROUPS:  # (batch, 15, 15, 64) to (batch, 3, 3, 256)
        x = layer(net, group + ".conv2", layer(net, group + ".conv1", x, task, new), task, new)
    x = pool_blocks(x, 3).reshape(len(x), -1)
    return (x @ net["weights"]["linear.weight"].astype(x.dtype)).astype(jnp.float32) / x.shape[1]


def predict(net, task, x):
    """Return the mean over six views: the image, moved by a pixel to both sides, and their mirror images."""

    def mirrored(x):
        return (forward(net, task, x) + forward(net, task, x[:, :, ::-1])) / 2

    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), "reflect")
    return mirrored(x) / 2 + (mirrored(padded[:, :32, :32]) + mirrored(padded[:, 2:, 2:])) / 4


def loss(net, task):
    def compute(weights, others, x, y):
        new = {}
        logarithms = log_softmax(forward({"weights": weights, "others": others}, task, x, new))
        right = jnp.take_along_axis(logarithms, y[:, None], axis=1).mean()
        value = -(1 - task.smoothing) * right - task.smoothing * logarithms.mean()
        return value, {**others, **new}

    return compute


def orthogonal(matrix, dtype):
    """Return a matrix with the singular vectors of ``matrix``, and singular values near 1."""
    x, (a, b, c) = matrix.astype(dtype), COEFFICIENTS
    x = x / (jnp.linalg.norm(x) + SMALLEST_NORM)
    wide = x.shape[0] <= x.shape[1]
    x = x if wide else x.T
    for _ in range(ITERATIONS):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x if wide else x.T


def muon_and_nesterov(task):
    """Return Muon for the filters, and Nesterov's momentum for the rest."""
    rates = jnp.array(learning_rates(task))

    def start(weights):
        return jax.tree.map(jnp.zeros_like, weights), jnp.zeros((), int)

    def move_filter(weight, velocity, gradient, rate):
        velocity = task.muon_momentum * velocity + gradient
        gradient = gradient + task.muon_momentum * velocity
        outputs = weight.shape[3]
        direction = orthogonal(gradient.reshape(-1, outputs).T, task.dtype).T.reshape(weight.shape)
        return weight * (outputs**0.5 / jnp.linalg.norm(weight)) - task.muon_rate * rate * direction, velocity

    def move(name, weight, velocity, gradient, factor):
        rate, decay = rate_and_decay(task, name)
        gradient = gradient + decay * weight
        velocity = task.momentum * velocity + gradient
        return weight - factor * rate * (gradient + task.momentum * velocity), velocity

    def update(slots, weights, grads):
        (velocities, count), moved, new = slots, {}, {}
        rate, whiten_rate = rates[:, jnp.minimum(count, rates.shape[1] - 1)]
        for name, weight in weights.items():
            arrays = weight, velocities[name], grads[name]
            if is_filter(name):
                moved[name], new[name] = move_filter(*arrays, rate)
            else:
                factor = whiten_rate if name == "whiten.bias" else rate
                moved[name], new[name] = move(name, *arrays, factor)
        return moved, (new, count + 1)

    return Optimiser(start, update)


def parts(net, task):
    return net["weights"], net["others"]


def training_step(net, task):
    def keep(weights, others):
        net.update(weights=weights, others=others)

    return make_training_step(loss(net, task), parts(net, task), muon_and_nesterov(task), keep)


def stored(net):
    return {**net["weights"], **net["others"]}


def neutral(name, array):
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T


def activations(net, task):
    return outputs(globals(), ("normalise",), lambda x: forward(net, task, x))
