"""Derived recipes in Paddle. Run where paddlepaddle is installed."""

import json

import numpy
import paddle
import pytest

from stele_worker import frameworks
from stele_worker.models import inspection
from stele_worker.models.errors import SpecError, UserCodeError
from tests.frameworks import contract
from tests.frameworks.contract import Arm, described

SPECS = ["paddle_models:" + name for name in ("TwoInputs", "image", "Attention", "WithLoss", "built")]
pytestmark = pytest.mark.filterwarnings("default")  # frameworks warn of each other


@pytest.fixture(scope="module", autouse=True)
def configured():
    contract.configure("paddle")


def inspected(spec, **changes):
    found = inspection.inspect(described(spec, **changes))
    json.dumps(found, allow_nan=False)
    return found


@pytest.mark.parametrize("spec", SPECS)
def test_the_facts_are_of_what_is_stored(spec):
    contract.facts_are_of_what_is_stored("paddle", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_the_loss_falls(spec):
    contract.loss_falls("paddle", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_two_constructions_give_equal_weights(spec):
    contract.construction_repeats("paddle", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_what_is_stored_loads_into_a_second_network(spec, tmp_path):
    contract.round_trip_is_exact("paddle", spec, tmp_path / "weights.npz")


def test_what_is_stored_loads_in_another_process(tmp_path):
    contract.round_trip_is_exact_in_another_process("paddle", "paddle_models:image", tmp_path / "weights.npz")


@pytest.mark.parametrize("spec", SPECS)
def test_without_dropout_training_repeats(spec):
    contract.without_dropout_training_repeats("paddle", spec)


@pytest.mark.parametrize("spec", ["paddle_models:image", "paddle_models:Attention"])
def test_with_dropout_two_steps_differ(spec):
    contract.with_dropout_two_steps_differ("paddle", spec)


@pytest.mark.parametrize("spec", ["paddle_models:image"])
def test_parity_sees_the_running_statistics(spec):
    contract.parity_sees_the_running_statistics("paddle", spec, "_mean", "_variance")


@pytest.mark.parametrize("spec", SPECS)
def test_parity_sees_every_update(spec):
    contract.parity_sees_every_update("paddle", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_inference_repeats_whatever_the_dropout(spec):
    contract.inference_repeats("paddle", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_gradients_are_of_the_trainable_parameters(spec):
    # Paddle's running statistics are parameters that no gradient reaches
    parameters = Arm("paddle", spec).net.named_parameters()
    names = [name for name, weight in parameters if not weight.stop_gradient]
    contract.gradients_are_of("paddle", spec, names)


@pytest.mark.parametrize("spec", SPECS)
def test_two_inference_calls_agree_in_an_inspection(spec):
    assert inspected(spec)["deterministic"]


@pytest.mark.parametrize(("spec", "optimizer"), [("TwoInputs", "SGD"), ("image", "SGD"), ("image", "Adam")])
def test_five_steps_equal_a_loop_by_hand(spec, optimizer):
    spec = "paddle_models:" + spec
    named = None if optimizer == "SGD" else "paddle.optimizer:Adam"
    arm, hand = Arm("paddle", spec, quiet=True, optimizer=named), Arm("paddle", spec, quiet=True)
    rate = 0.01 if named is None else 0.001
    optimizer = getattr(paddle.optimizer, optimizer)(rate, parameters=hand.net.parameters())
    expected = []
    hand.net.train()
    for _ in range(5):
        value = paddle.nn.functional.cross_entropy(hand.net(*hand.inputs), hand.batch[-1])
        value.backward()
        optimizer.step()
        optimizer.clear_grad()
        expected.append(float(value))
    assert arm.losses() == pytest.approx(expected, rel=1e-6)


def test_activations_come_in_the_order_of_execution():
    arm = Arm("paddle", "paddle_models:image")
    layers = arm.recipe.activations(arm.net, arm.task)(*arm.inputs)
    assert list(layers) == ["0", "1", "2", "3", "4", "5", "6"]
    numpy.testing.assert_array_equal(arm.fetch(layers["6"]), arm.infer())


def test_the_inputs_are_those_of_the_first_layer():
    found = inspected("paddle_models:image")
    assert found["inferred_from"] == "the signature and the first layer"
    assert found["inputs"] == [{"name": None, "kind": "float", "shape": [8, 3, 64, 64], "high": None, "dtype": None}]
    assert inspected("paddle_models:TwoInputs")["inferred_from"] == "example_inputs()"


def test_a_model_with_labels_computes_its_own_loss():
    found = inspected("paddle_models:WithLoss")
    assert found["loss"] == "the model's own"
    assert found["target"] == {"name": "labels", "kind": "int", "shape": [32], "high": 4, "dtype": None}


def test_inputs_that_cannot_be_inferred_are_asked_for():
    with pytest.raises(SpecError, match="cannot be inferred.* --input left=8x3x64x64 --input right=8x3x64x64"):
        inspected("paddle_models:Unknown")


def test_wrong_inputs_are_quoted_with_the_frameworks_message():
    given = [{"name": None, "kind": "float", "shape": [4, 9], "high": None}]
    with pytest.raises(SpecError, match="--input 4x9\n"):
        inspected("paddle_models:WithLoss", inputs=given)


def test_what_the_users_code_raises_is_shown_with_the_users_frames_alone():
    message = "paddle_models:broken raised KeyError: 'no such width'\n.*paddle_models.py"
    with pytest.raises(UserCodeError, match=message):
        inspected("paddle_models:broken")


def test_nothing_is_left_in_the_project():
    contract.nothing_is_left_in_the_project()


def test_a_static_mode_converts_the_model(monkeypatch):
    framework = frameworks.load("paddle")
    monkeypatch.setattr(framework, "mode", "to-static")
    monkeypatch.setattr(framework, "functions", [])
    contract.loss_falls("paddle", "paddle_models:image")
    assert framework.in_force()["programs"] > 0


def test_short_integers_become_long_ones():
    assert frameworks.load("paddle").put(numpy.arange(3, dtype="int32")).dtype == paddle.int64


def test_all_outputs_are_computed_and_compared():
    contract.all_outputs_are_returned("paddle", "paddle_models:Several", ["1", "2"], [(32, 5), (32, 5)])


def test_a_model_is_told_whether_it_trains_and_keeps_what_is_no_dropout():
    contract.training_is_told("paddle", "paddle_models:Several", "train")
    assert Arm("paddle", "paddle_models:Several", quiet=True).net.dropout == 0.5


@pytest.mark.parametrize(("tuned", "threads"), [(False, 2), (True, 1)])
def test_the_threads_of_openmp_are_those_of_the_user_for_a_users_model(tuned, threads):
    flags = contract.flags_of_a_users_model("paddle", tuned=tuned, OMP_NUM_THREADS="2", MKL_NUM_THREADS="2")
    assert flags["openmp_threads"] == threads
