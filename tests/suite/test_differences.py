"""The differences that the original comparison did not control: each is planted into the oracle and detected.

The numbers are those of docs/differences.md. Two of the differences are the same function, which is tested as well.
docs/differences.md lists what no check on a small batch can detect.
"""

import numpy
import pytest

from stele.errors import SteleError
from stele.parity import golden_numbers, ladder
from stele_suite import oracle
from stele_worker import causes, recipes
from tests.support.small_tasks import compute, differing_rungs, golden


def rungs(task, phase, **changes):
    """Return the titles of the rungs that differ when the oracle has a planted difference."""
    return differing_rungs(task, phase, compute(task, phase, **changes))


@pytest.fixture(scope="module", autouse=True)
def compute_golden_numbers_first():
    for cell in ("cnn", "infer"), ("cnn", "train"), ("gru", "infer"), ("gru", "train"), ("resnet50", "infer"):
        golden(*cell)


@pytest.fixture
def plant(monkeypatch):
    """plant(task, name, value) replaces a function of the oracle's recipe of a task."""

    def plant(task, name, value):
        monkeypatch.setattr(recipes.page(task, "numpy"), name, value)

    return plant


@pytest.fixture
def start_from(monkeypatch):
    """start_from(task, name=function) changes initial weights: the function of the Task's array replaces it."""

    def start_from(task, **functions):
        recipe = recipes.page(task, "numpy").Recipe
        load, changes = recipe.load, {name.replace("__", "."): function for name, function in functions.items()}

        def load_changed(self, net, weights):
            return load(self, net, {name: changes.get(name, lambda array: array)(weights[name]) for name in weights})

        monkeypatch.setattr(recipe, "load", load_changed)

    return start_from


def test_1_nesterov_momentum_is_detected():
    assert rungs("cnn", "train", cause="nesterov") == {"updates", "losses"}


def test_2_a_different_dropout_rate_is_a_different_task():
    with pytest.raises(SteleError, match="out of date"):
        rungs("cnn", "infer", dropout=(0.25, 0.25, 0.25))


@pytest.mark.parametrize("scale", [2.24 / 3, 3**0.5])
def test_3_a_different_initialiser_is_detected(start_from, scale):
    start_from("cnn", conv1__weight=lambda array: array * scale)
    assert rungs("cnn", "infer") == {"weights", "layers", "logits"}


def test_4_relu_before_and_after_pooling_are_the_same_function():
    x = numpy.random.RandomState(0).standard_normal((2, 6, 6, 3))
    pooled, _ = oracle.max_pool(oracle.relu(x)[0], size=2, stride=2)
    rectified, _ = oracle.relu(oracle.max_pool(x, size=2, stride=2)[0])
    assert (pooled == rectified).all()


def test_5_a_different_initial_bias_is_detected(start_from):
    start_from("cnn", dense2__bias=lambda array: array + 0.05)
    assert rungs("cnn", "infer") == {"weights", "layers", "logits"}


def test_6_the_learning_rate_inside_the_velocity_is_the_same_at_a_constant_rate(plant):
    plant("cnn", "sgd", sgd_with_rate_inside)
    assert rungs("cnn", "train") == set()


def sgd_with_rate_inside(net, *, learning_rate, momentum):
    velocity = {}

    def update(gradients):
        for name, g in gradients.items():
            velocity[name] = momentum * velocity.get(name, 0.0) + learning_rate * g
            net[name] -= velocity[name]

    return update


def test_6_unit_gain_is_detected():
    assert rungs("cnn", "train", cause="unit gain") == {"updates", "losses"}


def test_7_a_second_softmax_is_detected():
    assert "loss" in rungs("cnn", "train", cause="double softmax")


def test_7_a_sum_instead_of_the_mean_is_detected():
    assert "gradients" in rungs("cnn", "train", cause="summed loss")


@pytest.mark.parametrize(
    "cause",
    ["reset before", "inverted update gate", "hard sigmoid"],
    ids=["8-reset-before", "9-inverted-z", "10-hard-sigmoid"],
)
def test_a_different_gru_is_detected(cause):
    assert rungs("gru", "infer", cause=cause) == {"layers", "logits"}


def test_the_planted_cell_without_a_change_equals_the_tasks_cell(plant):
    def same(h, r, z, a_n, c_n, weight, bias):
        n, z = numpy.tanh(a_n + causes.sigmoid(r) * c_n), causes.sigmoid(z)
        return (1 - z) * n + z * h

    plant("gru", "cell", causes.make_cell(same)(None)["cell"])
    assert rungs("gru", "infer") == set()


def test_8_one_bias_instead_of_two_is_detected():
    assert rungs("gru", "infer", cause="one bias") == {"layers", "logits"}


@pytest.mark.parametrize("order", ["z, r, n", "r, n, z", "n, z, r"])
def test_8_gates_in_a_different_order_are_detected(order):
    assert rungs("gru", "infer", cause=f"gate order {order}") == {"layers", "logits"}


def test_11_zero_initial_weights_are_detected(start_from):
    start_from("gru", gru__input_weight=lambda array: 0 * array, gru__hidden_weight=lambda array: 0 * array)
    assert rungs("gru", "infer") == {"weights", "layers", "logits"}


def test_12_an_additional_parameter_is_detected():
    """For example a trained initial state."""
    expected = golden_numbers.load("gru")
    numbers = {
        "task": expected["task"],
        "gradients": {**expected["gradients"], "gru.initial_state": [0.1, 0.1, 0.1]},
    }
    [finding] = ladder.compare(numbers, expected, task="gru", precision="fp32")
    assert "gru.initial_state" in finding.message


def test_13_a_different_embedding_is_detected(start_from):
    start_from("gru", embedding__weight=lambda array: array * 20)
    assert rungs("gru", "infer") == {"weights", "layers", "logits"}


@pytest.mark.parametrize("cause", ["epsilon", "epsilon before the correction"])
def test_15_a_different_epsilon_is_detected(cause):
    assert "updates" in rungs("gru", "train", cause=cause)


@pytest.mark.parametrize("cause", ["stride", "epsilon of batch normalisation"])
def test_16_a_different_resnet_is_detected(cause):
    assert rungs("resnet50", "infer", cause=cause) == {"layers", "logits"}


def test_16_a_scale_fixed_at_one_is_detected(plant):
    """MXNet's fix_gamma differs if the scales are not one: after training, or in pretrained weights."""
    unit = recipes.page("resnet50", "numpy").normalise
    plant("resnet50", "normalise", lambda x, scale, *rest: unit(x, 1.01 * scale, *rest))
    assert rungs("resnet50", "infer") == {"layers", "logits"}
