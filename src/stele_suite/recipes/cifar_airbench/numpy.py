"""The network of airbench in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

import numpy

from stele_suite.oracle import (
    batch_norm,
    convolution,
    dense,
    gelu,
    max_pool,
    muon,
    newton_schulz,
    normalise,
    outer_nesterov,
    softmax_cross_entropy,
)
from stele_suite.tasks.cifar_airbench import (
    COEFFICIENTS,
    GROUPS,
    ITERATIONS,
    SMALLEST_NORM,
    is_filter,
    learning_rates,
    norm_of,
    rate_and_decay,
)
from stele_worker.frameworks.numpy.recipe import NumpyRecipe


def normalised(net, task, name, x, *, training):
    """Apply a normalisation; training replaces the running statistics in ``net``."""
    scale, shift = numpy.ones(x.shape[3]), net[name + ".bias"]
    running = name + ".running_mean", name + ".running_var"
    if not training:
        return normalise(x, scale, shift, *[net[one] for one in running], task.epsilon), None
    x, norm_backward, statistics = batch_norm(x, scale, shift, task.epsilon)
    for one, new in zip(running, statistics):
        net[one] = (1 - task.statistics) * net[one] + task.statistics * new

    def backward(g, d):
        g, _, d[name + ".bias"] = norm_backward(g)
        return g

    return x, backward


def layer(recipe, net, task, name, x, *, training):
    """Apply a convolution, a pool if it is the first of its group, the normalisation and GELU.

    Return (value, backward), as all functions up to forward: backward(g, d) returns the gradient of x and adds the
    gradients of the parameters to d. Inference has no backward.
    """
    x, convolution_backward = convolution(x, net[name + ".weight"])
    x, pool = max_pool(x, size=2, stride=2) if name.endswith("conv1") else (x, lambda g: g)
    x, norm_backward = normalised(net, task, norm_of(name), x, training=training)
    recipe.record(norm_of(name), x)
    x, activate = gelu(x)

    def backward(g, d):
        g, d[name + ".weight"], _ = convolution_backward(pool(norm_backward(activate(g), d)))
        return g

    return x, backward


class Recipe(NumpyRecipe):
    LAYOUT = "NHWC"

    def forward(self, net, task, x, random=None):
        tape, training = [], random is not None
        x = x.astype(numpy.float64)  # (batch, 32, 32, 3)
        x, whiten = convolution(x, net["whiten.weight"], net["whiten.bias"], padding=0)  # (batch, 31, 31, 24)
        x, activate = gelu(x)
        for name in [group + part for group in GROUPS for part in (".conv1", ".conv2")]:
            x, layer_backward = layer(self, net, task, name, x, training=training)
            tape.append(layer_backward)
        x, pool = max_pool(x, size=3, stride=3)  # (batch, 1, 1, 256)
        width = x.shape[3]
        x, classify = dense(x[:, 0, 0], net["linear.weight"], 0.0)

        def backward(g, d):
            g, d["linear.weight"], _ = classify(g / width)
            g = pool(g[:, None, None])
            for one in reversed(tape):
                g = one(g, d)
            _, _, d["whiten.bias"] = whiten(activate(g))

        return x / width, backward

    def predict(self, net, task, x):
        """Return the mean over six views: the image, moved by a pixel to both sides, and their mirror images."""

        def mirrored(x):
            return sum(self.forward(net, task, view)[0] for view in (x, x[:, :, ::-1])) / 2

        padded = numpy.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)], "reflect")
        moved = mirrored(padded[:, :32, :32]) + mirrored(padded[:, 2:, 2:])
        return mirrored(x) / 2 + moved / 4

    def loss(self, task, output, y):
        return softmax_cross_entropy(output, y, task.smoothing)

    def optimiser(self, net, task):
        """Return update(gradients): Muon for the filters, and SGD for the rest."""
        (rates, whiten_rates), steps = learning_rates(task), 0
        move_filters = muon(
            net,
            momentum=task.muon_momentum,
            orthogonal=lambda matrix: newton_schulz(matrix, COEFFICIENTS, ITERATIONS, SMALLEST_NORM),
        )
        move_others = outer_nesterov(
            net, momentum=task.momentum, rate_and_decay=lambda name: rate_and_decay(task, name)
        )

        def update(d):
            nonlocal steps
            now = min(steps, len(rates) - 1)
            move_filters({name: g for name, g in d.items() if is_filter(name)}, task.muon_rate * rates[now])
            others = {name: g for name, g in d.items() if not is_filter(name)}
            move_others(others, lambda name: (whiten_rates if name == "whiten.bias" else rates)[now])
            steps += 1

        return update
