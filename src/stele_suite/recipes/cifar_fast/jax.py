"""ResNet-9 in JAX: one jitted step, channels last, weights and optimiser state donated."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.nn import celu, log_softmax, relu

from stele_suite.tasks.cifar_fast import (
    AVERAGE_EVERY,
    AVERAGE_KEEPS,
    POOLED,
    RESIDUAL,
    choices,
    is_trained,
    learning_rates,
    rate_and_decay,
)
from stele_worker.frameworks.jax.images import pool_blocks
from stele_worker.frameworks.jax.recipe import JaxRecipe, Optimiser


def convolution(x, kernel):
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel.astype(x.dtype), (1, 1), "SAME", dimension_numbers=layout)


def normalise(net, name, x, task, training):
    """Normalise in float32; in training by the batch or its ghost batches, whose statistics ``training`` receives."""
    names = name + ".norm.running_mean", name + ".norm.running_var"
    mean, variance = net[names[0]], net[names[1]]
    ghost = choices(task).ghost or len(x)
    # image i is in group i modulo groups
    folded = x.astype(jnp.float32).reshape(-1, 1 if training is None else len(x) // ghost, *x.shape[1:])
    if training is not None:
        mean = folded.mean((0, 2, 3), keepdims=True)
        variance = jnp.square(folded).mean((0, 2, 3), keepdims=True) - jnp.square(mean)
        count = folded.size // mean.size
        for running, statistic in zip(names, (mean, variance * count / (count - 1))):
            of_batch = statistic.mean(1).reshape(-1)
            training.running[running] = net[running] + task.statistics * (of_batch - net[running])
    scale = lax.rsqrt(variance + task.epsilon) * net.get(name + ".norm.weight", 1.0)
    folded = (folded - mean) * scale + net[name + ".norm.bias"]
    return folded.reshape(x.shape).astype(x.dtype)


def layer(net, name, x, task, training):
    """Apply a convolution, its normalisation, the activation, and the pool of some layers."""
    chosen = choices(task)
    x = convolution(x, net[name + ".conv.weight"])
    if name in POOLED and chosen.pool_first:
        x = pool_blocks(x, 2)
    x = normalise(net, name, x, task, training)
    x = celu(x, chosen.alpha) if chosen.alpha else relu(x)
    return pool_blocks(x, 2) if name in POOLED and not chosen.pool_first else x


def nesterov(task):
    """Return Nesterov's momentum with the learning rate of each step inside the velocity."""
    rates = jnp.array(learning_rates(task))

    def start(weights):
        return jax.tree.map(jnp.zeros_like, weights), jnp.zeros((), int)

    def update(slots, weights, grads):
        velocity, count = slots
        rate, moved, new = rates[jnp.minimum(count, len(rates) - 1)], {}, {}
        for name, weight in weights.items():
            factor, decay = rate_and_decay(task, name)
            change = -factor * rate * (grads[name] + decay * weight)
            new[name] = task.momentum * velocity[name] + change
            moved[name] = weight + task.momentum * new[name] + change
        return moved, (new, count + 1)

    return Optimiser(start, update)


AVERAGE = "average."


def averages(net):
    """Return the moving averages of a network as a network."""
    return {name[len(AVERAGE) :]: array for name, array in net.items() if name.startswith(AVERAGE)}


class Recipe(JaxRecipe):
    """The moving average of an array is in the network, too, by the name ``average.ARRAY``."""

    LAYOUT = "NHWC"

    def network(self, task):
        return {"steps": jnp.zeros((), int)} if choices(task).average else {}

    def forward(self, net, task, x, training=None):
        def apply(name, x):
            return self.record(name, layer(net, name, x, task, training))

        x = x.astype(task.dtype)  # (batch, 32, 32, 3)
        if choices(task).whitens:
            x = convolution(x, net["whiten.weight"])  # (batch, 32, 32, 27)
        for name in ("prep", "layer1", "layer2", "layer3"):  # (batch, 32, 32, 64) to (batch, 4, 4, 512)
            x = apply(name, x)
            if name in RESIDUAL:
                x = x + apply(name + ".residual2", apply(name + ".residual1", x))
        x = pool_blocks(x, 4).reshape(-1, 8 * task.width)
        x = x @ net["linear.weight"].astype(x.dtype)
        return x.astype(jnp.float32) * choices(task).factor  # (batch, 10)

    def predict(self, net, task, x):
        """Return logits: those of the moving average, and the mean with those of the mirror image."""
        if choices(task).average:
            net = averages(net)
        logits = self.forward(net, task, x)
        return (logits + self.forward(net, task, x[:, :, ::-1])) / 2 if choices(task).flips else logits

    def loss(self, task, output, y):
        logarithms, smoothing = log_softmax(output), choices(task).smoothing
        right = jnp.take_along_axis(logarithms, y[:, None], axis=1).mean()
        return -(1 - smoothing) * right - smoothing * logarithms.mean()

    def optimiser(self, net, task):
        return nesterov(task)

    def layout(self, name, array):
        if array.ndim == 4:
            return array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        return array.T if array.ndim == 2 else array

    def assign(self, net, arrays):
        if "steps" in net:
            net.update((AVERAGE + name, jnp.array(array)) for name, array in arrays.items())
        return super().assign(net, arrays)

    def is_trained(self, name):
        return is_trained(name) and not name.startswith(AVERAGE) and name != "steps"

    def stored(self, net):
        return {name: array for name, array in net.items() if not name.startswith(AVERAGE) and name != "steps"}

    def after_step(self, task, weights, others):
        if not choices(task).average:
            return others
        newest, count = {**others, **weights}, others["steps"] + 1

        def move(average):
            keeps = AVERAGE_KEEPS
            return {name: keeps * array + (1 - keeps) * newest[name] for name, array in average.items()}

        average = lax.cond(count % AVERAGE_EVERY == 1, move, lambda average: average, averages(others))
        return {**others, **{AVERAGE + name: array for name, array in average.items()}, "steps": count}
