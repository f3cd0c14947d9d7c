"""ResNet-9 in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

import numpy

from stele_suite.oracle import (
    batch_norm,
    celu,
    convolution,
    dense,
    ghost_batch_norm,
    max_pool,
    nesterov,
    normalise,
    relu,
    softmax_cross_entropy,
)
from stele_suite.tasks.cifar_fast import (
    AVERAGE_EVERY,
    AVERAGE_KEEPS,
    POOLED,
    RESIDUAL,
    choices,
    learning_rates,
    rate_and_decay,
)
from stele_worker.frameworks.numpy.recipe import NumpyRecipe


class Network(dict):
    """{parameter: float64 array}, and in ``average`` another such network, if the Task evaluates a moving average."""

    average = None


def normalised(net, task, name, x, *, training):
    """Apply the normalisation of a layer; training replaces the running statistics in ``net``."""
    chosen, mean, variance = choices(task), name + ".norm.running_mean", name + ".norm.running_var"
    scale, shift = net.get(name + ".norm.weight", numpy.ones(x.shape[3])), net[name + ".norm.bias"]
    if not training:
        return normalise(x, scale, shift, net[mean], net[variance], task.epsilon), None
    if chosen.ghost:
        x, norm_backward, statistics = ghost_batch_norm(x, scale, shift, task.epsilon, chosen.ghost)
    else:
        x, norm_backward, statistics = batch_norm(x, scale, shift, task.epsilon)
    for running, new in zip((mean, variance), statistics):
        net[running] = (1 - task.statistics) * net[running] + task.statistics * new

    def backward(g, d):
        g, d[name + ".norm.weight"], d[name + ".norm.bias"] = norm_backward(g)
        return g

    return x, backward


def layer(recipe, net, task, name, x, *, training):
    """Apply a convolution, its normalisation, the activation and the pool of a layer.

    Return (value, backward), as all functions up to forward: backward(g, d) returns the gradient of x and adds the
    gradients of the parameters to d. Inference has no backward.
    """
    chosen = choices(task)
    x, convolution_backward = convolution(x, net[name + ".conv.weight"])
    tape = []

    def pool(x):
        x, pool_backward = max_pool(x, size=2, stride=2)
        tape.append(lambda g, d: pool_backward(g))
        return x

    if name in POOLED and chosen.pool_first:
        x = pool(x)
    x, norm_backward = normalised(net, task, name, x, training=training)
    x, activation_backward = celu(x, chosen.alpha) if chosen.alpha else relu(x)
    tape += [norm_backward, lambda g, d: activation_backward(g)]
    if name in POOLED and not chosen.pool_first:
        x = pool(x)
    recipe.record(name, x)

    def backward(g, d):
        for one in reversed(tape):
            g = one(g, d)
        g, d[name + ".conv.weight"], *_ = convolution_backward(g)
        return g

    return x, backward


def residual(recipe, net, task, name, x, *, training):
    y, first = layer(recipe, net, task, name + ".residual1", x, training=training)
    y, second = layer(recipe, net, task, name + ".residual2", y, training=training)
    return x + y, lambda g, d: g + first(second(g, d), d)


class Recipe(NumpyRecipe):
    LAYOUT = "NHWC"

    def network(self, task):
        return Network(super().network(task))

    def forward(self, net, task, x, random=None):
        tape, training = [], random is not None
        x = x.astype(numpy.float64)  # (batch, 32, 32, 3)
        if choices(task).whitens:
            x, _ = convolution(x, net["whiten.weight"])  # (batch, 32, 32, 27)
        for name in ("prep", "layer1", "layer2", "layer3"):
            x, layer_backward = layer(self, net, task, name, x, training=training)
            tape.append(layer_backward)
            if name in RESIDUAL:
                x, residual_backward = residual(self, net, task, name, x, training=training)
                tape.append(residual_backward)
        x, pool = max_pool(x, size=4, stride=4)  # (batch, 1, 1, 512)
        x, classify = dense(x[:, 0, 0], net["linear.weight"], 0.0)

        def backward(g, d):
            g, d["linear.weight"], _ = classify(choices(task).factor * g)
            g = pool(g[:, None, None])
            for one in reversed(tape):
                g = one(g, d)

        return choices(task).factor * x, backward

    def predict(self, net, task, x):
        """Return logits: those of the moving average, and the mean with those of the mirror image."""
        net = net.average or net
        logits, _ = self.forward(net, task, x)
        if not choices(task).flips:
            return logits
        return (logits + self.forward(net, task, x[:, :, ::-1])[0]) / 2

    def loss(self, task, output, y):
        return softmax_cross_entropy(output, y, choices(task).smoothing)

    def optimiser(self, net, task):
        return nesterov(
            net,
            rates=learning_rates(task),
            momentum=task.momentum,
            rate_and_decay=lambda name: rate_and_decay(task, name),
        )

    def training_step(self, net, task):
        update, steps = super().training_step(net, task), 0
        net.average = {name: array.copy() for name, array in net.items()} if choices(task).average else None

        def step(x, y):
            nonlocal steps
            loss = update(x, y)
            steps += 1
            if net.average and steps % AVERAGE_EVERY == 1:
                for name, old in net.average.items():
                    net.average[name] = AVERAGE_KEEPS * old + (1 - AVERAGE_KEEPS) * net[name]
            return loss

        return step
