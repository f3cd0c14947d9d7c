"""The network of airbench in JAX: one jitted step, channels last, weights and optimiser state donated."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.nn import gelu, log_softmax

from stele_suite.tasks.cifar_airbench import (
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
from stele_worker.frameworks.jax.images import pool_blocks
from stele_worker.frameworks.jax.recipe import JaxRecipe, Optimiser


def convolution(x, kernel, padding="SAME"):
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel.astype(x.dtype), (1, 1), padding, dimension_numbers=layout)


def normalise(net, name, x, task, training):
    """Normalise in float32. In training ``training`` receives the running statistics."""
    names = name + ".running_mean", name + ".running_var"
    mean, variance = net[names[0]], net[names[1]]
    dtype, x = x.dtype, x.astype(jnp.float32)
    if training is not None:
        mean, variance, count = x.mean((0, 1, 2)), x.var((0, 1, 2)), x.size // x.shape[3]
        for running, statistic in zip(names, (mean, variance * count / (count - 1))):
            training.running[running] = net[running] + task.statistics * (statistic - net[running])
    x = (x - mean) * lax.rsqrt(variance + task.epsilon) + net[name + ".bias"]
    return x.astype(dtype)


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


class Recipe(JaxRecipe):
    LAYOUT = "NHWC"

    def layer(self, net, name, x, task, training):
        """Apply a convolution, a pool if it is the first of its group, the normalisation and GELU."""
        x = convolution(x, net[name + ".weight"])
        x = pool_blocks(x, 2) if name.endswith("conv1") else x
        x = self.record(norm_of(name), normalise(net, norm_of(name), x, task, training))
        return gelu(x, approximate=False)

    def forward(self, net, task, x, training=None):
        x = x.astype(task.dtype)  # (batch, 32, 32, 3)
        x = convolution(x, net["whiten.weight"], "VALID") + net["whiten.bias"].astype(x.dtype)
        x = gelu(x, approximate=False)  # (batch, 31, 31, 24)
        for name in [group + part for group in GROUPS for part in (".conv1", ".conv2")]:
            x = self.layer(net, name, x, task, training)  # (batch, 15, 15, 64) to (batch, 3, 3, 256)
        x = pool_blocks(x, 3).reshape(len(x), -1)
        return (x @ net["linear.weight"].astype(x.dtype)).astype(jnp.float32) / x.shape[1]

    def predict(self, net, task, x):
        """Return the mean over six views: the image, moved by a pixel to both sides, and their mirror images."""

        def mirrored(x):
            return (self.forward(net, task, x) + self.forward(net, task, x[:, :, ::-1])) / 2

        padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), "reflect")
        return mirrored(x) / 2 + (mirrored(padded[:, :32, :32]) + mirrored(padded[:, 2:, 2:])) / 4

    def loss(self, task, output, y):
        logarithms = log_softmax(output)
        right = jnp.take_along_axis(logarithms, y[:, None], axis=1).mean()
        return -(1 - task.smoothing) * right - task.smoothing * logarithms.mean()

    def optimiser(self, net, task):
        return muon_and_nesterov(task)

    def layout(self, name, array):
        if array.ndim == 4:
            return array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        return array.T if array.ndim == 2 else array

    def is_trained(self, name):
        return is_trained(name)
