"""Derived recipes in TensorFlow without Keras. Run where TensorFlow is installed."""

import json

import numpy
import pytest
import tensorflow as tf

from stele_worker import frameworks
from stele_worker.models import inspection
from stele_worker.models.errors import SpecError, UserCodeError
from tests.frameworks import contract
from tests.frameworks.contract import Arm, described

SPECS = ["tensorflow_models:TwoInputs", "tensorflow_models:Callable"]
pytestmark = pytest.mark.filterwarnings("default")  # frameworks warn of each other


@pytest.fixture(scope="module", autouse=True)
def configured():
    contract.configure("tensorflow")


def inspected(spec, **changes):
    found = inspection.inspect(described(spec, **changes))
    json.dumps(found, allow_nan=False)
    return found


@pytest.mark.parametrize("spec", SPECS)
def test_the_facts_are_of_what_is_stored(spec):
    contract.facts_are_of_what_is_stored("tensorflow", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_the_loss_falls(spec):
    contract.loss_falls("tensorflow", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_two_constructions_give_equal_weights(spec):
    contract.construction_repeats("tensorflow", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_what_is_stored_loads_into_a_second_network(spec, tmp_path):
    contract.round_trip_is_exact("tensorflow", spec, tmp_path / "weights.npz")


def test_what_is_stored_loads_in_another_process(tmp_path):
    contract.round_trip_is_exact_in_another_process("tensorflow", SPECS[0], tmp_path / "weights.npz")


@pytest.mark.parametrize("spec", SPECS)
def test_without_dropout_training_repeats(spec):
    contract.without_dropout_training_repeats("tensorflow", spec)


def test_with_dropout_two_steps_differ():
    contract.with_dropout_two_steps_differ("tensorflow", SPECS[0])


@pytest.mark.parametrize("spec", SPECS)
def test_parity_sees_every_update(spec):
    contract.parity_sees_every_update("tensorflow", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_inference_repeats_whatever_the_dropout(spec):
    contract.inference_repeats("tensorflow", spec)


def test_gradients_are_of_the_trainable_parameters():
    contract.gradients_are_of("tensorflow", SPECS[0], ["weight", "tokens", "unused", "weight#2"])


@pytest.mark.parametrize("spec", SPECS)
def test_two_inference_calls_agree_in_an_inspection(spec):
    assert inspected(spec)["deterministic"]


@pytest.mark.parametrize("name", [None, "keras.optimizers:SGD"])
def test_five_steps_equal_a_loop_by_hand(name):
    arm = Arm("tensorflow", SPECS[0], quiet=True, optimizer=name)
    hand = Arm("tensorflow", SPECS[0], quiet=True).net
    x, ids, y = arm.batch
    expected = []
    for _ in range(5):
        with tf.GradientTape() as tape:
            value = tf.nn.relu(x @ hand.weight) + tf.reduce_mean(tf.gather(hand.tokens, ids), 1)
            hand.mean.assign(0.9 * hand.mean + 0.1 * tf.reduce_mean(value, 0))
            logits = (value - hand.mean) @ hand.again
            value = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        variables = [hand.weight, hand.tokens, hand.again]
        for variable, grad in zip(variables, tape.gradient(value, variables), strict=True):
            variable.assign_sub(0.01 * tf.convert_to_tensor(grad))
        expected.append(float(value))
    assert arm.losses() == pytest.approx(expected, rel=1e-6)


def test_a_model_with_labels_computes_its_own_loss():
    found = inspected("tensorflow_models:Callable")
    assert found["inferred_from"] == "example_inputs()"
    assert found["loss"] == "the model's own"
    assert found["target"] == {"name": "labels", "kind": "int", "shape": [6], "high": 3, "dtype": None}


def test_bfloat16_is_refused():
    with pytest.raises(SpecError, match="Use fp32 or tf32"):
        Arm("tensorflow", SPECS[0], dtype="bfloat16")


def test_inputs_that_cannot_be_inferred_are_asked_for():
    with pytest.raises(SpecError, match="cannot be inferred. Add for example: --input 8x3x64x64"):
        inspected("tensorflow_models:Unknown")


def test_wrong_inputs_are_quoted_with_the_frameworks_message():
    given = [{"name": "x", "kind": "float", "shape": [4, 9], "high": None}]
    given.append({"name": "ids", "kind": "int", "shape": [4, 6], "high": 50})
    with pytest.raises(SpecError, match="--input x=4x9 --input ids=int:4x6:50\n"):
        inspected("tensorflow_models:TwoInputs", inputs=given)


def test_what_the_users_code_raises_is_shown_with_the_users_frames_alone():
    message = "tensorflow_models:broken raised KeyError: 'no such width'\n.*tensorflow_models.py"
    with pytest.raises(UserCodeError, match=message):
        inspected("tensorflow_models:broken")


def test_nothing_is_left_in_the_project():
    contract.nothing_is_left_in_the_project()


def test_a_users_model_runs_with_the_flags_of_tensorflow():
    flags = contract.flags_of_a_users_model("tensorflow", TF_ENABLE_ONEDNN_OPTS="0")
    assert flags["tf32"] is True
    assert flags["TF_CUDNN_USE_AUTOTUNE"] == "default"
    assert flags["onednn"] == "0"


def test_short_integers_become_long_ones():
    assert frameworks.load("tensorflow").put(numpy.arange(3, dtype="int32")).dtype == tf.int64


def test_all_outputs_are_computed_and_compared():
    contract.all_outputs_are_returned("tensorflow", "tensorflow_models:Several", ["logits", "boxes"], [(4, 5), (4, 5)])


def test_a_model_is_told_whether_it_trains():
    contract.training_is_told("tensorflow", "tensorflow_models:Several", "is_training")


def test_a_frozen_step_returns_all_outputs(monkeypatch):
    arm = Arm("tensorflow", "tensorflow_models:Several")
    expected = arm.outputs()
    monkeypatch.setattr(frameworks.load("tensorflow"), "mode", "frozen")
    contract.assert_equal(arm.outputs(), expected)
