"""Known causes of a difference, each as a change to the oracle's recipe.

When a recipe differs from the oracle, the oracle computes again with each cause injected. A cause that reproduces
the recipe's numbers is the likely one. The tests inject every cause and check that it is found.
"""

from contextlib import contextmanager
from typing import Callable, NamedTuple, Tuple

import numpy

from stele_suite import oracle
from stele_worker import recipes


class Cause(NamedTuple):
    """``patch(page) -> {name: value}``: replacements for names in the module of an oracle's recipe."""

    tasks: Tuple[str, ...]
    phase: str  # the first phase in which the cause shows
    message: str
    patch: Callable


@contextmanager
def inject(task, name):
    """Inject the cause ``name`` into the oracle's recipe of the task named ``task``, until the context ends.

    A recipe that is loaded in the context has the cause.
    """
    page = recipes.page(task, "numpy")
    changes = CAUSES[name].patch(page)
    before = {attribute: getattr(page, attribute) for attribute in changes}
    vars(page).update(changes)
    try:
        yield
    finally:
        vars(page).update(before)


# optimisers


def make_sgd(rule):
    """Return a patch: SGD with ``rule(velocity, gradient, momentum) -> (velocity, direction)``."""

    def sgd(net, *, learning_rate, momentum):
        velocity = {}

        def update(gradients):
            for name, g in gradients.items():
                velocity[name], direction = rule(velocity.get(name, 0.0), g, momentum)
                net[name] = net[name] - learning_rate * direction

        return update

    return lambda page: {"sgd": sgd}


def nesterov(v, g, m):
    v = m * v + g
    return v, g + m * v


def unit_gain(v, g, m):
    v = m * v + (1 - m) * g
    return v, v


def no_momentum(v, g, m):
    return v, g


def epsilon_before_correction(page):
    """Add epsilon to the root of the second moment before that moment is corrected."""

    def adam(net, *, learning_rate, beta1, beta2, epsilon):
        steps = [0]

        def update(gradients):
            steps[0] += 1
            update_with_epsilon(gradients, epsilon / (1 - beta2 ** steps[0]) ** 0.5)

        update_with_epsilon = make_adam(net, learning_rate, beta1, beta2)
        return update

    return {"adam": adam}


def make_adam(net, learning_rate, beta1, beta2):
    """Return update(gradients, epsilon): the Task's Adam, with a different epsilon at each step."""
    means, squares, steps = {}, {}, [0]

    def update(gradients, epsilon):
        steps[0] += 1
        for name, g in gradients.items():
            means[name] = beta1 * means.get(name, 0.0) + (1 - beta1) * g
            squares[name] = beta2 * squares.get(name, 0.0) + (1 - beta2) * g * g
            mean, square = means[name] / (1 - beta1 ** steps[0]), squares[name] / (1 - beta2 ** steps[0])
            net[name] = net[name] - learning_rate * mean / (numpy.sqrt(square) + epsilon)

    return update


def larger_epsilon(page):
    return {"adam": lambda net, **constants: oracle.adam(net, **dict(constants, epsilon=1e-7))}


def uncorrected_moments(page):
    def adam(net, *, learning_rate, beta1, beta2, epsilon):
        means, squares = {}, {}

        def update(gradients):
            for name, g in gradients.items():
                means[name] = beta1 * means.get(name, 0.0) + (1 - beta1) * g
                squares[name] = beta2 * squares.get(name, 0.0) + (1 - beta2) * g * g
                net[name] = net[name] - learning_rate * means[name] / (numpy.sqrt(squares[name]) + epsilon)

        return update

    return {"adam": adam}


# losses


def double_softmax(page):
    def cross_entropy(logits, labels):
        powers = numpy.exp(logits - logits.max(1, keepdims=True))
        probabilities = powers / powers.sum(1, keepdims=True)
        loss, second_backward = oracle.softmax_cross_entropy(probabilities, labels)

        def backward(g=1.0):
            g = second_backward(g)
            return probabilities * (g - (g * probabilities).sum(1, keepdims=True))

        return loss, backward

    return {"softmax_cross_entropy": cross_entropy}


def summed_loss(page):
    def cross_entropy(logits, labels):
        loss, backward = oracle.softmax_cross_entropy(logits, labels)
        return loss * len(labels), lambda g=1.0: backward(g * len(labels))

    return {"softmax_cross_entropy": cross_entropy}


# images


def change_weights(change):
    """Return a patch: load() applies ``change(name, array) -> array``; stored() returns the unchanged weights."""

    def patch(page):
        class Recipe(page.Recipe):
            def load(self, net, weights):
                self.unchanged = weights
                return super().load(net, {name: change(name, array) for name, array in weights.items()})

            def stored(self, net):
                return self.unchanged

        return {"Recipe": Recipe}

    return patch


def rows_first(name, array):
    """Change dense1 as if it read row, column, channel with weights for channel, row, column."""
    if name != "dense1.weight":
        return array
    return array.reshape(512, 8, 8, 100).transpose(0, 3, 1, 2).reshape(512, 6400)


def transpose_kernels(name, array):
    """Swap the rows and columns of kernels, as a layout (width, height) does."""
    return array.transpose(0, 1, 3, 2) if array.ndim == 4 else array


def rotate_kernels(name, array):
    """Rotate kernels by 180 degrees: a true convolution, where frameworks compute a cross-correlation."""
    return array[:, :, ::-1, ::-1] if array.ndim == 4 else array


def same_padding(page):
    """TensorFlow's SAME: if the padding of a strided window is odd, the end gets one more. Forward only."""

    def shift(operation):
        def shifted_operation(x, *arrays, **options):
            stride, size = options.get("stride", 1), arrays[0].shape[2] if arrays else options["size"]
            if stride == 1 or size == 1:
                return operation(x, *arrays, **options)
            value, _ = operation(oracle.pad(x, 1), *arrays, **options)  # each window starts one pixel later
            height, width = [1 - (-length // stride) for length in x.shape[1:3]]
            return value[:, 1:height, 1:width], None

        return shifted_operation

    return {"convolution": shift(oracle.convolution), "max_pool": shift(oracle.max_pool)}


def stride_in_first_convolution(page):
    """ResNet-50 v1, where the Task is v1.5: the first convolution of a block has the stride."""
    unit, bottleneck = page.unit, page.bottleneck
    block_stride = [1]

    def bottleneck_v1(net, task, name, x, *, stride, **rest):
        block_stride[0] = stride
        return bottleneck(net, task, name, x, stride=stride, **rest)

    def unit_v1(net, task, conv, norm, x, *, stride, **rest):
        if conv.startswith("layer") and conv.endswith((".conv1", ".conv2")):
            stride = block_stride[0] if conv.endswith(".conv1") else 1
        return unit(net, task, conv, norm, x, stride=stride, **rest)

    return {"unit": unit_v1, "bottleneck": bottleneck_v1}


def normalisation_epsilon(epsilon):
    def patch(page):
        return {
            "normalise": lambda *arguments: oracle.normalise(*arguments[:-1] + (epsilon,)),
            "batch_norm": lambda *arguments: oracle.batch_norm(*arguments[:-1] + (epsilon,)),
        }

    return patch


def batch_statistics(page):
    """Normalise by the batch's statistics in inference, as in training."""

    class Recipe(page.Recipe):
        def features(self, net, task, x, *, training):
            return super().features(dict(net), task, x, training=True)

    return {"Recipe": Recipe}


# recurrences


def make_cell(form):
    """Return a patch: a GRU of ``form(h, r, z, a_n, c_n, weight_n, bias_n) -> h``. Forward only."""

    def cell(a, h, weight, bias):
        (a_r, a_z, a_n), c = numpy.split(a, 3, axis=1), h.dot(weight.T) + bias
        c_r, c_z, c_n = numpy.split(c, 3, axis=1)
        size = h.shape[1]
        return form(h, a_r + c_r, a_z + c_z, a_n, c_n, weight[-size:], bias[-size:]), None

    return lambda page: {"cell": cell}


def sigmoid(x):
    return (1 + numpy.tanh(x / 2)) / 2


def hard_sigmoid(x):
    return numpy.clip(0.2 * x + 0.5, 0, 1)


def reset_before(h, r, z, a_n, c_n, weight, bias):
    n, z = numpy.tanh(a_n + (sigmoid(r) * h).dot(weight.T) + bias), sigmoid(z)
    return (1 - z) * n + z * h


def inverted_update_gate(h, r, z, a_n, c_n, weight, bias):
    n, z = numpy.tanh(a_n + sigmoid(r) * c_n), sigmoid(z)
    return (1 - z) * h + z * n


def hard_gates(h, r, z, a_n, c_n, weight, bias):
    n, z = numpy.tanh(a_n + hard_sigmoid(r) * c_n), hard_sigmoid(z)
    return (1 - z) * n + z * h


def stack_gates(order):
    """Return a patch: gates are stacked as ``order``, but the recurrence reads them as r, z, n."""

    def change(name, array):
        if not name.startswith("gru."):
            return array
        return numpy.concatenate([numpy.split(array, 3)["rzn".index(gate)] for gate in order])

    return change_weights(change)


def no_hidden_bias(name, array):
    return numpy.zeros_like(array) if name == "gru.hidden_bias" else array


def all_positions(length):
    return numpy.ones((length, length), bool)


def without_smoothing(logits, labels, smoothing):
    return oracle.softmax_cross_entropy(logits, labels)


SGD_TASKS = ("cnn", "resnet50")
ALL_TASKS = ("cnn", "gru", "resnet50")

CAUSES = {
    "layout": Cause(
        ("cnn",),
        "infer",
        "layout: dense1 reads its inputs as row, column, channel; expected channel, row, column",
        change_weights(rows_first),
    ),
    "transposed kernels": Cause(
        SGD_TASKS,
        "infer",
        "layout: the rows and columns of the convolution kernels are swapped",
        change_weights(transpose_kernels),
    ),
    "turned kernels": Cause(
        SGD_TASKS,
        "infer",
        "layout: the convolution kernels are rotated by 180 degrees (true convolution, not cross-correlation)",
        change_weights(rotate_kernels),
    ),
    "padding": Cause(
        ("resnet50",),
        "infer",
        "padding: SAME, which pads strided windows more at the end",
        same_padding,
    ),
    "stride": Cause(
        ("resnet50",),
        "infer",
        "stride: in the first convolution of each block (ResNet-50 v1), not in the second (v1.5)",
        stride_in_first_convolution,
    ),
    "epsilon of batch normalisation": Cause(
        ("resnet50",),
        "infer",
        "epsilon: 1e-3 in batch normalisation, not 1e-5",
        normalisation_epsilon(1e-3),
    ),
    "batch statistics": Cause(
        ("resnet50",),
        "infer",
        "inference mode: batch normalisation uses the batch's statistics, not the running statistics",
        batch_statistics,
    ),
    "gate order z, r, n": Cause(
        ("gru",),
        "infer",
        "gate order: weights are stacked as z, r, n but read as r, z, n",
        stack_gates("zrn"),
    ),
    "gate order r, n, z": Cause(
        ("gru",),
        "infer",
        "gate order: weights are stacked as r, n, z but read as r, z, n",
        stack_gates("rnz"),
    ),
    "gate order n, z, r": Cause(
        ("gru",),
        "infer",
        "gate order: weights are stacked as n, z, r but read as r, z, n",
        stack_gates("nzr"),
    ),
    "inverted update gate": Cause(
        ("gru",),
        "infer",
        "GRU form: z multiplies the new state and 1 - z the old state, not the reverse",
        make_cell(inverted_update_gate),
    ),
    "reset before": Cause(
        ("gru",),
        "infer",
        "GRU form: the reset gate is applied before the matrix product, not after",
        make_cell(reset_before),
    ),
    "hard sigmoid": Cause(("gru",), "infer", "GRU form: hard sigmoid in the gates, not sigmoid", make_cell(hard_gates)),
    "one bias": Cause(("gru",), "infer", "GRU form: one bias, not two", change_weights(no_hidden_bias)),
    "double softmax": Cause(
        ALL_TASKS,
        "train",
        "double softmax: the loss receives probabilities but expects logits",
        double_softmax,
    ),
    "summed loss": Cause(ALL_TASKS, "train", "loss: summed over the batch, not averaged", summed_loss),
    "nesterov": Cause(SGD_TASKS, "train", "momentum form: Nesterov momentum, not plain momentum", make_sgd(nesterov)),
    "unit gain": Cause(
        SGD_TASKS,
        "train",
        "momentum form: the gradient is multiplied by 1 - momentum (unit gain)",
        make_sgd(unit_gain),
    ),
    "no momentum": Cause(SGD_TASKS, "train", "momentum form: the momentum is not applied", make_sgd(no_momentum)),
    "epsilon": Cause(("gru",), "train", "epsilon: 1e-7 in Adam, not 1e-8", larger_epsilon),
    "epsilon before the correction": Cause(
        ("gru",),
        "train",
        "epsilon: Adam adds it before the second moment is bias-corrected, not after",
        epsilon_before_correction,
    ),
    "uncorrected moments": Cause(("gru",), "train", "Adam: the moments are not bias-corrected", uncorrected_moments),
    "approximate GELU": Cause(
        ("encoder",),
        "infer",
        "GELU: approximated with tanh, not computed with the error function",
        lambda page: {"gelu": oracle.gelu_tanh},
    ),
    "exact GELU": Cause(
        ("decoder",),
        "infer",
        "GELU: computed with the error function, not approximated with tanh",
        lambda page: {"gelu_tanh": oracle.gelu},
    ),
    "no causal mask": Cause(
        ("transformer", "decoder"),
        "infer",
        "attention: without the causal mask",
        lambda page: {"causal": all_positions},
    ),
    "no smoothing": Cause(
        ("transformer",),
        "train",
        "cross-entropy: without label smoothing",
        lambda page: {"softmax_cross_entropy": without_smoothing},
    ),
}
