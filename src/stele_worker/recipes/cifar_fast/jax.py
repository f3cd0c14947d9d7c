"""ResNet-9 in JAX: one jitted step, channels last, weights and optimiser state donated."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.nn import celu, log_softmax, relu

from stele_worker.frameworks.jax import Optimiser, make_training_step
from stele_worker.images.jax import pool_blocks
from stele_worker.layers import outputs
from stele_worker.tasks.cifar_fast import (
    AVERAGE_EVERY,
    AVERAGE_KEEPS,
    POOLED,
    RESIDUAL,
    choices,
    is_trained,
    learning_rates,
    rate_and_decay,
)

LAYOUT = "NHWC"


def network(task):
    # by name; others are running statistics and the whitening filters
    average = {"average": None} if choices(task).average else {}
    return {"weights": {}, "others": {}, **average}


def load(net, weights):
    for name, array in weights.items():
        if array.ndim == 4:
            array = array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        net["weights" if is_trained(name) else "others"][name] = jnp.array(
            array.T if array.ndim == 2 else array
        )
    if "average" in net:
        net["average"] = dict(net["weights"]), dict(net["others"])
    return net


def convolution(x, kernel):
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel.astype(x.dtype), (1, 1), "SAME", dimension_numbers=layout)


def normalise(net, name, x, task, new):
    """Normalise in float32: in training by the statistics of the batch or its ghost batches, which ``new`` receives."""
    names = name + ".norm.running_mean", name + ".norm.running_var"
    mean, variance = net["others"][names[0]], net["others"][names[1]]
    ghost = choices(task).ghost or len(x)
    # image i is in group i modulo groups
    folded = x.astype(jnp.float32).reshape(-1, 1 if new is None else len(x) // ghost, *x.shape[1:])
    if new is not None:
        mean = folded.mean((0, 2, 3), keepdims=True)
        variance = jnp.square(folded).mean((0, 2, 3), keepdims=True) - jnp.square(mean)
        count = folded.size // mean.size
        for running, statistic in zip(names, (mean, variance * count / (count - 1))):
            of_batch = statistic.mean(1).reshape(-1)
            new[running] = net["others"][running] + task.statistics * (of_batch - net["others"][running])
    scale = lax.rsqrt(variance + task.epsilon) * net["weights"].get(name + ".norm.weight", 1.0)
    folded = (folded - mean) * scale + net["weights"][name + ".norm.bias"]
    return folded.reshape(x.shape).astype(x.dtype)


def layer(net, name, x, task, new):
    """Apply a convolution, its normalisation, the activation, and the pool of some layers."""
    chosen = choices(task)
    x = convolution(x, net["weights"][name + ".conv.weight"])
    if name in POOLED and chosen.pool_first:
        x = pool_blocks(x, 2)
    x = normalise(net, name, x, task, new)
    x = celu(x, chosen.alpha) if chosen.alpha else relu(x)
    return pool_blocks(x, 2) if name in POOLED and not chosen.pool_first else x


def forward(net, task, x, new=None):
    x = x.astype(task.dtype)  # (batch, 32, 32, 3)
    if choices(task).whitens:
        x = convolution(x, net["others"]["whiten.weight"])  # (batch, 32, 32, 27)
    for name in ("prep", "layer1", "layer2", "layer3"):  # (batch, 32, 32, 64) to (batch, 4, 4, 512)
        x = layer(net, name, x, task, new)
        if name in RESIDUAL:
            x = x + layer(net, name + ".residual2", layer(net, name + ".residual1", x, task, new), task, new)
    x = pool_blocks(x, 4).reshape(-1, 8 * task.width)
    x = x @ net["weights"]["linear.weight"].astype(x.dtype)
    return x.astype(jnp.float32) * choices(task).factor  # (batch, 10)


def predict(net, task, x):
    """Return logits: those of the moving average, and the mean with those of the mirror image."""
    if "average" in net:
        net = dict(zip(("weights", "others"), net["average"]))
    logits = forward(net, task, x)
    return (logits + forward(net, task, x[:, :, ::-1])) / 2 if choices(task).flips else logits


def loss(net, task):
    smoothing = choices(task).smoothing

    def compute(weights, state, x, y):
        others, *rest = state
        new = {}
        logarithms = log_softmax(forward({"weights": weights, "others": others}, task, x, new))
        right = jnp.take_along_axis(logarithms, y[:, None], axis=1).mean()
        value = -(1 - smoothing) * right - smoothing * logarithms.mean()
        return value, ({**others, **new}, *rest)

    return compute


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


def parts(net, task):
    if "average" not in net:
        return net["weights"], (net["others"],)
    copy = jax.tree.map(
        jnp.copy, net["average"]
    )  # the step donates its arguments, and may not donate one twice
    return net["weights"], (net["others"], copy, jnp.zeros((), int))


def update_average(weights, state):
    others, average, count = state

    def move(average):
        return jax.tree.map(
            lambda a, b: AVERAGE_KEEPS * a + (1 - AVERAGE_KEEPS) * b, average, (weights, others)
        )

    count = count + 1
    return others, lax.cond(count % AVERAGE_EVERY == 1, move, lambda average: average, average), count


def training_step(net, task):
    def keep(weights, state):
        net.update(zip(("others", "average"), state), weights=weights)

    finish = {"finish": update_average} if "average" in net else {}
    return make_training_step(loss(net, task), parts(net, task), nesterov(task), keep, **finish)


def stored(net):
    return {**net["weights"], **net["others"]}


def neutral(name, array):
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T


def activations(net, task):
    return outputs(globals(), ("layer",), lambda x: forward(net, task, x))
