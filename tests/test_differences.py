"""The differences that the original comparison left uncontrolled, each planted into the oracle, and each caught.

Numbered as they are known: Caffe2's Nesterov default is the first. Two of them are the same function, which is
tested too; what no check on a small batch can see stands in docs/differences.md.
"""

import numpy
import pytest

from small import computed, differing, golden
from stele.errors import SteleError
from stele.parity import golden_numbers, ladder
from stele_worker import causes, oracle, recipes


def found(task, phase, **changes):
    """The titles of the rungs on which the oracle breaks with a difference in it."""
    return differing(task, phase, computed(task, phase, **changes))


@pytest.fixture(scope="module", autouse=True)
def before_anything_is_planted():
    for cell in ("cnn", "infer"), ("cnn", "train"), ("gru", "infer"), ("gru", "train"), ("resnet50", "infer"):
        golden(*cell)


@pytest.fixture
def planted(monkeypatch):
    """planted(task, name, value): the oracle's recipe of a task with another function of that name."""

    def planted(task, name, value):
        monkeypatch.setattr(recipes.load(task, "numpy"), name, value)

    return planted


@pytest.fixture
def start_from(planted):
    """start_from(task, name=function): other initial weights, made of the Task's."""

    def start_from(task, **functions):
        load = recipes.load(task, "numpy").load
        changes = {name.replace("__", "."): function for name, function in functions.items()}

        def other(net, weights):
            return load(
                net, {name: changes.get(name, lambda array: array)(weights[name]) for name in weights}
            )

        planted(task, "load", other)

    return start_from


def test_1_nesterov_momentum_is_caught():
    assert found("cnn", "train", cause="nesterov") == {"updates", "losses"}


def test_2_another_dropout_rate_is_another_task():
    with pytest.raises(SteleError, match="stale"):
        found("cnn", "infer", dropout=(0.25, 0.25, 0.25))


@pytest.mark.parametrize("scale", [2.24 / 3, 3**0.5])
def test_3_another_initialiser_is_caught(start_from, scale):
    start_from("cnn", conv1__weight=lambda array: array * scale)
    assert found("cnn", "infer") == {"weights", "layers", "logits"}


def test_4_relu_before_and_after_pooling_are_the_same_function():
    x = numpy.random.RandomState(0).standard_normal((2, 6, 6, 3))
    pooled, _ = oracle.max_pool(oracle.relu(x)[0], size=2, stride=2)
    rectified, _ = oracle.relu(oracle.max_pool(x, size=2, stride=2)[0])
    assert (pooled == rectified).all()


def test_5_a_bias_that_starts_elsewhere_is_caught(start_from):
    start_from("cnn", dense2__bias=lambda array: array + 0.05)
    assert found("cnn", "infer") == {"weights", "layers", "logits"}


def test_6_the_learning_rate_inside_the_velocity_is_the_same_at_a_constant_rate(planted):
    planted("cnn", "sgd", inside)
    assert found("cnn", "train") == set()


def inside(net, *, learning_rate, momentum):
    velocity = {}

    def update(gradients):
        for name, g in gradients.items():
            velocity[name] = momentum * velocity.get(name, 0.0) + learning_rate * g
            net[name] -= velocity[name]

    return update


def test_6_unit_gain_is_caught():
    assert found("cnn", "train", cause="unit gain") == {"updates", "losses"}


def test_7_a_second_softmax_is_caught():
    assert "loss" in found("cnn", "train", cause="double softmax")


def test_7_a_sum_in_place_of_the_mean_is_caught():
    assert "gradients" in found("cnn", "train", cause="summed loss")


@pytest.mark.parametrize(
    "cause",
    ["reset before", "inverted update gate", "hard sigmoid"],
    ids=["8-reset-before", "9-inverted-z", "10-hard-sigmoid"],
)
def test_another_gru_is_caught(cause):
    assert found("gru", "infer", cause=cause) == {"layers", "logits"}


def test_the_planted_gates_are_otherwise_the_tasks(planted):
    def same(h, r, z, a_n, c_n, weight, bias):
        n, z = numpy.tanh(a_n + causes.sigmoid(r) * c_n), causes.sigmoid(z)
        return (1 - z) * n + z * h

    planted("gru", "cell", causes.another_cell(same)(None)["cell"])
    assert found("gru", "infer") == set()


def test_8_one_bias_in_place_of_two_is_caught():
    assert found("gru", "infer", cause="one bias") == {"layers", "logits"}


@pytest.mark.parametrize("order", ["z, r, n", "r, n, z", "n, z, r"])
def test_8_gates_in_another_order_are_caught(order):
    assert found("gru", "infer", cause=f"gate order {order}") == {"layers", "logits"}


def test_11_weights_that_start_at_zero_are_caught(start_from):
    start_from("gru", gru__input_weight=lambda array: 0 * array, gru__hidden_weight=lambda array: 0 * array)
    assert found("gru", "infer") == {"weights", "layers", "logits"}


def test_12_a_parameter_more_is_caught():
    """As where the initial state is trained."""
    expected = golden_numbers.load("gru")
    numbers = {
        "task": expected["task"],
        "gradients": {**expected["gradients"], "gru.initial_state": [0.1, 0.1, 0.1]},
    }
    [finding] = ladder.compare(numbers, expected, task="gru", precision="fp32")
    assert "gru.initial_state" in finding.message


def test_13_another_embedding_is_caught(start_from):
    start_from("gru", embedding__weight=lambda array: array * 20)
    assert found("gru", "infer") == {"weights", "layers", "logits"}


@pytest.mark.parametrize("cause", ["epsilon", "epsilon before the correction"])
def test_15_another_epsilon_is_caught(cause):
    assert "updates" in found("gru", "train", cause=cause)


@pytest.mark.parametrize("cause", ["stride", "epsilon of batch normalisation"])
def test_16_another_resnet_is_caught(cause):
    assert found("resnet50", "infer", cause=cause) == {"layers", "logits"}


def test_16_a_scale_fixed_at_one_is_caught(planted):
    """MXNet's fix_gamma: where the scales are not one, as after training or in pretrained weights."""
    unit = recipes.load("resnet50", "numpy").normalise
    planted("resnet50", "normalise", lambda x, scale, *rest: unit(x, 1.01 * scale, *rest))
    assert found("resnet50", "infer") == {"layers", "logits"}
