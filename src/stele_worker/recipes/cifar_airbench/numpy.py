"""The network of airbench in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

import numpy

from stele_worker import tasks
from stele_worker.oracle import (
    batch_norm,
    convolution,
    dense,
    gelu,
    load_weights,
    max_pool,
    muon,
    newton_schulz,
    normalise,
    outer_nesterov,
    softmax_cross_entropy,
    zero_parameters,
)
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
    return zero_parameters({name: array.shape for name, array in tasks.weights(task).items()})


def load(net, weights):
    return load_weights(net, weights)


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


def layer(net, task, name, x, layer_outputs, *, training):
    """Apply a convolution, a pool if it is the first of its group, the normalisation and GELU.

    Return (value, backward), as all functions up to forward: backward(g, d) returns the gradient of x and adds the
    gradients of the parameters to d. Inference has no backward.
    """
    x, convolution_backward = convolution(x, net[name + ".weight"])
    x, pool = max_pool(x, size=2, stride=2) if name.endswith("conv1") else (x, lambda g: g)
    x, norm_backward = normalised(net, task, norm_of(name), x, training=training)
    layer_outputs[norm_of(name)] = x
    x, activate = gelu(x)

    def backward(g, d):
        g, d[name + ".weight"], _ = convolution_backward(pool(norm_backward(activate(g), d)))
        return g

    return x, backward


def forward(net, task, x, *, training, layer_outputs=None):
    layer_outputs, tape = {} if layer_outputs is None else layer_outputs, []
    x = x.astype(numpy.float64)  # (batch, 32, 32, 3)
    x, whiten = convolution(x, net["whiten.weight"], net["whiten.bias"], padding=0)  # (batch, 31, 31, 24)
    x, activate = gelu(x)
    for name in [group + part for group in GROUPS for part in (".conv1", ".conv2")]:
        x, layer_backward = layer(net, task, name, x, layer_outputs, training=training)
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


def loss_and_gradients(net, task, x, y):
    logits, backward = forward(net, task, x, training=True)
    loss, cross_entropy = softmax_cross_entropy(logits, y, task.smoothing)
    d = {}
    backward(cross_entropy(), d)
    return loss, {name: d[name] for name in net if is_trained(name)}


def gradients(net, task):
    return lambda x, y: loss_and_gradients(dict(net), task, x, y)  # a copy: keep the running statistics


def training_step(net, task):
    (rates, whiten_rates), steps = learning_rates(task), 0
    move_filters = muon(
        net,
        momentum=task.muon_momentum,
        orthogonal=lambda matrix: newton_schulz(matrix, COEFFICIENTS, ITERATIONS, SMALLEST_NORM),
    )
    move_others = outer_nesterov(
        net, momentum=task.momentum, rate_and_decay=lambda name: rate_and_decay(task, name)
    )

    def step(x, y):
        nonlocal steps
        loss, d = loss_and_gradients(net, task, x, y)
        now = min(steps, len(rates) - 1)
        move_filters({name: g for name, g in d.items() if is_filter(name)}, task.muon_rate * rates[now])
        others = {name: g for name, g in d.items() if not is_filter(name)}
        move_others(others, lambda name: (whiten_rates if name == "whiten.bias" else rates)[now])
        steps += 1
        return loss

    return step


def inference_step(net, task):
    def mirrored(x):
        return sum(forward(net, task, one, training=False)[0] for one in (x, x[:, :, ::-1])) / 2

    def step(x):
        padded = numpy.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)], "reflect")
        moved = mirrored(padded[:, :32, :32]) + mirrored(padded[:, 2:, 2:])
        return mirrored(x) / 2 + moved / 4

    return step


def stored(net):
    return net


def neutral(name, array):
    return array


def activations(net, task):
    def run(x):
        layer_outputs = {}
        forward(net, task, x, training=False, layer_outputs=layer_outputs)
        return layer_outputs

    return run
