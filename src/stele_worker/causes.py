"""What is known to make a recipe compute something else, each as a change to the oracle's recipe.

A recipe that breaks is held against the oracle with each of these in it: what computes the same is the cause.
The tests plant them one by one and see each of them caught.
"""

from contextlib import contextmanager
from typing import Callable, NamedTuple, Tuple

import numpy

from stele_worker import oracle, recipes


class Cause(NamedTuple):
    """``plant(recipe) -> {name: value}``: what of the module of an oracle's recipe becomes something else."""

    tasks: Tuple[str, ...]
    phase: str  # the first in which it shows
    message: str
    plant: Callable


@contextmanager
def planted(task, name):
    """The oracle's recipe of ``task``, a name, with the cause ``name`` in it."""
    recipe = recipes.load(task, "numpy")
    changes = CAUSES[name].plant(recipe)
    before = {attribute: getattr(recipe, attribute) for attribute in changes}
    vars(recipe).update(changes)
    try:
        yield
    finally:
        vars(recipe).update(before)


# optimisers


def descent(rule):
    """SGD made of ``rule(velocity, gradient, momentum) -> (velocity, direction)``."""

    def sgd(net, *, learning_rate, momentum):
        velocity = {}

        def update(gradients):
            for name, g in gradients.items():
                velocity[name], direction = rule(velocity.get(name, 0.0), g, momentum)
                net[name] = net[name] - learning_rate * direction

        return update

    return lambda recipe: {"sgd": sgd}


def nesterov(v, g, m):
    v = m * v + g
    return v, g + m * v


def unit_gain(v, g, m):
    v = m * v + (1 - m) * g
    return v, v


def no_momentum(v, g, m):
    return v, g


def uncorrected_epsilon(recipe):
    """Epsilon meets the root of the second moment before that moment is corrected."""

    def adam(net, *, learning_rate, beta1, beta2, epsilon):
        steps = [0]

        def update(gradients):
            steps[0] += 1
            updates(gradients, epsilon / (1 - beta2 ** steps[0]) ** 0.5)

        updates = adjustable(net, learning_rate, beta1, beta2)
        return update

    return {"adam": adam}


def adjustable(net, learning_rate, beta1, beta2):
    """Adam as the Task has it: update(gradients, epsilon)."""
    first, second, steps = {}, {}, [0]

    def update(gradients, epsilon):
        steps[0] += 1
        for name, g in gradients.items():
            first[name] = beta1 * first.get(name, 0.0) + (1 - beta1) * g
            second[name] = beta2 * second.get(name, 0.0) + (1 - beta2) * g * g
            mean, square = first[name] / (1 - beta1 ** steps[0]), second[name] / (1 - beta2 ** steps[0])
            net[name] = net[name] - learning_rate * mean / (numpy.sqrt(square) + epsilon)

    return update


def other_epsilon(recipe):
    return {"adam": lambda net, **constants: oracle.adam(net, **dict(constants, epsilon=1e-7))}


def uncorrected_moments(recipe):
    def adam(net, *, learning_rate, beta1, beta2, epsilon):
        first, second = {}, {}

        def update(gradients):
            for name, g in gradients.items():
                first[name] = beta1 * first.get(name, 0.0) + (1 - beta1) * g
                second[name] = beta2 * second.get(name, 0.0) + (1 - beta2) * g * g
                net[name] = net[name] - learning_rate * first[name] / (numpy.sqrt(second[name]) + epsilon)

        return update

    return {"adam": adam}


# losses


def double_softmax(recipe):
    def twice(logits, labels):
        powers = numpy.exp(logits - logits.max(1, keepdims=True))
        first = powers / powers.sum(1, keepdims=True)
        loss, second = oracle.softmax_cross_entropy(first, labels)

        def backward(g=1.0):
            g = second(g)
            return first * (g - (g * first).sum(1, keepdims=True))

        return loss, backward

    return {"softmax_cross_entropy": twice}


def summed(recipe):
    def total(logits, labels):
        loss, backward = oracle.softmax_cross_entropy(logits, labels)
        return loss * len(labels), lambda g=1.0: backward(g * len(labels))

    return {"softmax_cross_entropy": total}


# images


def loaded(change):
    """Weights that are changed as they are loaded, ``change(name, array) -> array``, and back as they are read."""

    def plant(recipe):
        load, held = recipe.load, {}

        def changed(net, weights):
            held.update(weights)
            return load(net, {name: change(name, array) for name, array in weights.items()})

        return {"load": changed, "stored": lambda net: held}

    return plant


def rows_first(name, array):
    """A dense layer fed row, column, channel with weights for channel, row, column."""
    if name != "dense1.weight":
        return array
    return array.reshape(512, 8, 8, 100).transpose(0, 3, 1, 2).reshape(512, 6400)


def transposed(name, array):
    """Kernels whose rows and columns change places, as a layout (width, height) would have it."""
    return array.transpose(0, 1, 3, 2) if array.ndim == 4 else array


def turned(name, array):
    """Kernels turned by half a turn: a convolution where frameworks compute a cross-correlation."""
    return array[:, :, ::-1, ::-1] if array.ndim == 4 else array


def padding_at_the_end(recipe):
    """TensorFlow's SAME: where the padding of a strided window is odd, the end has more of it. Forward alone."""

    def later(operation):
        def moved(x, *arrays, **options):
            stride, size = options.get("stride", 1), arrays[0].shape[2] if arrays else options["size"]
            if stride == 1 or size == 1:
                return operation(x, *arrays, **options)
            value, _ = operation(oracle.padded(x, 1), *arrays, **options)  # each window starts a pixel later
            height, width = [1 - (-length // stride) for length in x.shape[1:3]]
            return value[:, 1:height, 1:width], None

        return moved

    return {"convolution": later(oracle.convolution), "max_pool": later(oracle.max_pool)}


def first_stride(recipe):
    """ResNet-50 v1, where the Task is v1.5: the stride in the first convolution of a block."""
    unit, bottleneck = recipe.unit, recipe.bottleneck
    outer = [1]

    def block(net, task, name, x, *, stride, **rest):
        outer[0] = stride
        return bottleneck(net, task, name, x, stride=stride, **rest)

    def moved(net, task, conv, norm, x, *, stride, **rest):
        if conv.startswith("layer") and conv.endswith((".conv1", ".conv2")):
            stride = outer[0] if conv.endswith(".conv1") else 1
        return unit(net, task, conv, norm, x, stride=stride, **rest)

    return {"unit": moved, "bottleneck": block}


def other_normalisation(epsilon):
    def plant(recipe):
        return {
            "normalise": lambda *given: oracle.normalise(*given[:-1] + (epsilon,)),
            "batch_norm": lambda *given: oracle.batch_norm(*given[:-1] + (epsilon,)),
        }

    return plant


def batch_statistics(recipe):
    """Inference as in training: the batch's own statistics normalise."""
    features = recipe.features

    def learning(net, task, x, *, training, **rest):
        return features(dict(net), task, x, training=True, **rest)

    return {"features": learning}


# recurrences


def another_cell(form):
    """A GRU of ``form(h, r, z, a_n, c_n, weight_n, bias_n) -> h``, forward alone."""

    def cell(a, h, weight, bias):
        (a_r, a_z, a_n), c = numpy.split(a, 3, axis=1), h.dot(weight.T) + bias
        c_r, c_z, c_n = numpy.split(c, 3, axis=1)
        size = h.shape[1]
        return form(h, a_r + c_r, a_z + c_z, a_n, c_n, weight[-size:], bias[-size:]), None

    return lambda recipe: {"cell": cell}


def sigmoid(x):
    return (1 + numpy.tanh(x / 2)) / 2


def hard_sigmoid(x):
    return numpy.clip(0.2 * x + 0.5, 0, 1)


def reset_before(h, r, z, a_n, c_n, weight, bias):
    n, z = numpy.tanh(a_n + (sigmoid(r) * h).dot(weight.T) + bias), sigmoid(z)
    return (1 - z) * n + z * h


def inverted(h, r, z, a_n, c_n, weight, bias):
    n, z = numpy.tanh(a_n + sigmoid(r) * c_n), sigmoid(z)
    return (1 - z) * h + z * n


def hard(h, r, z, a_n, c_n, weight, bias):
    n, z = numpy.tanh(a_n + hard_sigmoid(r) * c_n), hard_sigmoid(z)
    return (1 - z) * n + z * h


def reordered(order):
    """Gates stacked as ``order`` where the recurrence takes them as r, z, n."""

    def change(name, array):
        if not name.startswith("gru."):
            return array
        return numpy.concatenate([numpy.split(array, 3)["rzn".index(gate)] for gate in order])

    return loaded(change)


def no_hidden_bias(name, array):
    return numpy.zeros_like(array) if name == "gru.hidden_bias" else array


SGD = ("cnn", "resnet50")
EVERY = ("cnn", "gru", "resnet50")

CAUSES = {
    "layout": Cause(
        ("cnn",),
        "infer",
        "layout: dense1 reads row, column, channel, not channel, row, column",
        loaded(rows_first),
    ),
    "transposed kernels": Cause(
        SGD, "infer", "layout: rows and columns of the convolutions' kernels are swapped", loaded(transposed)
    ),
    "turned kernels": Cause(
        SGD,
        "infer",
        "layout: the kernels are turned by half a turn, for a convolution proper",
        loaded(turned),
    ),
    "padding": Cause(
        ("resnet50",),
        "infer",
        "padding: SAME, with more of it at the end of strided windows",
        padding_at_the_end,
    ),
    "stride": Cause(
        ("resnet50",), "infer", "stride: in the first convolution of a block, ResNet-50 v1", first_stride
    ),
    "epsilon of batch normalisation": Cause(
        ("resnet50",), "infer", "epsilon: 1e-3 in batch normalisation", other_normalisation(1e-3)
    ),
    "batch statistics": Cause(
        ("resnet50",),
        "infer",
        "inference mode: batch normalisation by the batch's own statistics",
        batch_statistics,
    ),
    "gate order z, r, n": Cause(
        ("gru",), "infer", "gate order: weights stacked as z, r, n, read as r, z, n", reordered("zrn")
    ),
    "gate order r, n, z": Cause(
        ("gru",), "infer", "gate order: weights stacked as r, n, z, read as r, z, n", reordered("rnz")
    ),
    "gate order n, z, r": Cause(
        ("gru",), "infer", "gate order: weights stacked as n, z, r, read as r, z, n", reordered("nzr")
    ),
    "inverted update gate": Cause(
        ("gru",), "infer", "GRU form: z weighs the new state, 1 - z the old one", another_cell(inverted)
    ),
    "reset before": Cause(
        ("gru",),
        "infer",
        "GRU form: the reset gate before the product, not after",
        another_cell(reset_before),
    ),
    "hard sigmoid": Cause(("gru",), "infer", "GRU form: hard sigmoid in the gates", another_cell(hard)),
    "one bias": Cause(("gru",), "infer", "GRU form: one bias in place of two", loaded(no_hidden_bias)),
    "double softmax": Cause(
        EVERY, "train", "double softmax: the loss takes probabilities for logits", double_softmax
    ),
    "summed loss": Cause(EVERY, "train", "loss: the sum over the batch, not the mean", summed),
    "nesterov": Cause(SGD, "train", "momentum form: Nesterov's", descent(nesterov)),
    "unit gain": Cause(
        SGD, "train", "momentum form: the gradient enters times 1 - momentum (unit gain)", descent(unit_gain)
    ),
    "no momentum": Cause(SGD, "train", "momentum form: none", descent(no_momentum)),
    "epsilon": Cause(("gru",), "train", "epsilon: 1e-7 in Adam, not 1e-8", other_epsilon),
    "epsilon before the correction": Cause(
        ("gru",), "train", "epsilon: added before the second moment is corrected", uncorrected_epsilon
    ),
    "uncorrected moments": Cause(
        ("gru",), "train", "Adam's moments are not corrected for their bias", uncorrected_moments
    ),
}
