"""Derived recipes in Keras 2. Run with TensorFlow 2.15, whose tf.keras it is; or with tf_keras on a newer TensorFlow,
where models of Keras 3 are compared with it, too.
"""

import importlib.util
import json
import re

import numpy
import pytest

from stele.parity import reference
from stele_worker import agreement, frameworks, subjects
from stele_worker.models import inspection, specs
from stele_worker.models.errors import SpecError, UserCodeError
from tests.frameworks import contract
from tests.frameworks.contract import Arm, described

MODULE = "tf_keras_models:"
KERAS_2, KERAS_3 = "tensorflow", "keras"  # the frameworks whose derived recipes they have
MODULES = {KERAS_2: MODULE, KERAS_3: "keras_models:"}
OPTIMIZERS = "tf_keras.optimizers" if importlib.util.find_spec("tf_keras") else "tensorflow.keras.optimizers"
NAMES = [
    "two_inputs",
    "named",
    "image",
    "recurrent",
    "regularised",
    "nested",
    "Subclassed",
    "built",
    "OwnLoss",
]
SPECS = [MODULE + name for name in NAMES]
DROPPING = [MODULE + name for name in ("image", "recurrent", "Subclassed")]

pytestmark = pytest.mark.filterwarnings("default")  # frameworks warn of each other


@pytest.fixture(scope="module", autouse=True)
def configured():
    contract.configure("tensorflow")


def inspected(spec, **changes):
    found = inspection.inspect(described(spec, **changes))
    json.dumps(found, allow_nan=False)
    return found


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
    contract.round_trip_is_exact_in_another_process("tensorflow", MODULE + "image", tmp_path / "weights.npz")


@pytest.mark.parametrize("spec", SPECS)
def test_without_dropout_training_repeats(spec):
    contract.without_dropout_training_repeats("tensorflow", spec, lambda arm: arm.gradients())


@pytest.mark.parametrize("spec", DROPPING)
def test_with_dropout_two_steps_differ(spec):
    arm = Arm("tensorflow", spec)
    run = arm.recipe.gradients(arm.net, arm.task)
    first, second = ({name: arm.fetch(value) for name, value in run(*arm.batch)[1].items()} for _ in range(2))
    assert any((first[name] != second[name]).any() for name in first)


@pytest.mark.parametrize("spec", ["tf_keras_models:image"])
def test_parity_sees_the_running_statistics(spec):
    contract.parity_sees_the_running_statistics("tensorflow", spec, "moving_mean", "moving_variance")


@pytest.mark.parametrize("spec", SPECS)
def test_parity_sees_every_update(spec):
    contract.parity_sees_every_update("tensorflow", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_inference_repeats_whatever_the_dropout(spec):
    contract.inference_repeats("tensorflow", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_gradients_are_of_the_trainable_parameters(spec):
    arm = Arm("tensorflow", spec)
    count = len(arm.net.trainable_variables)
    names = [name for name in arm.stored() if "moving_" not in name]
    assert len(names) == count
    contract.gradients_are_of("tensorflow", spec, names)


@pytest.mark.parametrize("spec", SPECS)
def test_two_inference_calls_agree_in_an_inspection(spec):
    assert inspected(spec)["deterministic"]


@pytest.mark.parametrize("spec", [MODULE + "two_inputs", MODULE + "image", MODULE + "regularised"])
@pytest.mark.parametrize("optimizer", [None, OPTIMIZERS + ":Adam"])
def test_five_steps_equal_train_on_batch(spec, optimizer):
    arm, hand = Arm("tensorflow", spec, quiet=True, optimizer=optimizer), Arm("tensorflow", spec, quiet=True)
    keras = importlib.import_module(OPTIMIZERS.rpartition(".")[0])
    logits = not spec.endswith("image")
    hand.net.compile(
        keras.optimizers.Adam() if optimizer else keras.optimizers.SGD(0.01),
        keras.losses.SparseCategoricalCrossentropy(from_logits=logits),
    )
    x = hand.inputs if len(hand.inputs) > 1 else hand.inputs[0]
    expected = [float(hand.net.train_on_batch(x, hand.batch[-1], reset_metrics=True)) for _ in range(5)]
    assert arm.losses() == pytest.approx(expected, rel=1e-5)


def test_a_model_whose_call_takes_no_training_drops_out_in_training_alone():
    given = [{"name": None, "kind": "float", "shape": [4, 6], "high": None}]
    arm = Arm("tensorflow", MODULE + "Unknown", inputs=given)
    assert (arm.infer() == arm.infer()).all()
    assert len(set(arm.losses(3))) == 3


def test_activations_come_in_the_order_of_execution():
    arm = Arm("tensorflow", MODULE + "image")
    layers = arm.recipe.activations(arm.net, arm.task)(*arm.inputs)
    assert list(layers) == ["conv2d", "batch_normalization", "re_lu", "dropout", "flatten", "dense"]
    numpy.testing.assert_allclose(arm.fetch(list(layers.values())[-1]), arm.infer(), rtol=1e-6)


def test_bfloat16_computes_in_bfloat16_and_answers_in_float32():
    spec = MODULE + "two_inputs"
    arm, exact = (Arm("tensorflow", spec, dtype=dtype) for dtype in ("bfloat16", "float32"))
    assert arm.infer() == pytest.approx(exact.infer(), abs=0.05)
    assert (arm.infer() != exact.infer()).any()


def test_the_inputs_are_those_of_the_graph():
    found = inspected(MODULE + "two_inputs")
    assert [(each["kind"], each["shape"], each["high"]) for each in found["inputs"]] == [
        ("float", [32, 8], None),
        ("int", [32, 64], 50),
    ]
    assert (found["framework"], found["output"]) == ("tensorflow", [32, 5])
    assert [each["name"] for each in inspected(MODULE + "named")["inputs"]] == ["x", "ids"]


def test_a_model_of_tf_keras_applications_is_one():
    arm = Arm("tensorflow", MODULE + "mobile", quiet=True)
    assert arm.task.inputs[0].shape == (8, 32, 32, 3)
    assert list(arm.recipe.activations(arm.net, arm.task)(*arm.inputs))[-1] == "predictions"
    losses = arm.losses(3)
    assert losses[0] != losses[2]


def test_inputs_that_cannot_be_inferred_are_asked_for():
    with pytest.raises(SpecError, match="cannot be inferred. Add for example: --input 8x3x64x64"):
        inspected(MODULE + "Unknown")


def test_wrong_inputs_are_quoted_with_the_frameworks_message():
    given = [{"name": None, "kind": "float", "shape": [4, 9, 9, 5], "high": None}]
    with pytest.raises(SpecError, match="--input 4x9x9x5\n"):
        inspected(MODULE + "image", inputs=given)


def test_what_the_users_code_raises_is_shown_with_the_users_frames_alone():
    message = MODULE + "broken raised KeyError: 'no such width'\n.*tf_keras_models.py"
    with pytest.raises(UserCodeError, match=message):
        inspected(MODULE + "broken")


def test_nothing_is_left_in_the_project():
    contract.nothing_is_left_in_the_project()


@pytest.fixture
def keras_3():
    import keras

    contract.configure("keras")
    yield keras
    contract.configure("tensorflow")


@pytest.mark.parametrize("name", ["two_inputs", "named", "recurrent", "nested", "Subclassed"])
def test_keras_3_computes_the_same_from_the_weights_of_keras_2(keras_3, tmp_path, name):
    assert differences(KERAS_2, KERAS_3, name, tmp_path / "weights.npz") == {}


@pytest.mark.parametrize("name", ["two_inputs", "nested"])
def test_keras_2_computes_the_same_from_the_weights_of_keras_3(keras_3, tmp_path, name):
    assert differences(KERAS_3, KERAS_2, name, tmp_path / "weights.npz") == {}


VARIANCE = {
    "image": "update of batch_normalization/moving_variance after step 1: relative error 0.0004",
    "mobile": "update of conv_pw_12_bn/moving_variance after step 1: relative error 0.02",  # of 8 values
}
ADAM = {KERAS_2: OPTIMIZERS + ":Adam", KERAS_3: "keras.optimizers:Adam"}


@pytest.mark.parametrize(
    ("old", "new", "name", "optimizers", "rungs"),
    [
        (KERAS_2, KERAS_3, "image", {}, [[6]]),
        (KERAS_2, KERAS_3, "image", ADAM, [[6]]),
        (KERAS_3, KERAS_2, "image", {}, [[6]]),
        # the last batch norms see 8 values: on some processors their rounding decides the losses of later steps
        (KERAS_2, KERAS_3, "mobile", {}, [[6], [6, 7]]),
    ],
    ids=["2 to 3", "2 to 3 with Adam", "3 to 2", "keras.applications"],
)
def test_keras_3_divides_the_running_variance_by_another_number_than_keras_2(
    keras_3, tmp_path, old, new, name, optimizers, rungs
):
    """By the number of values, and not by one less: keras-team/keras#19649. Everything else is equal."""
    found = differences(old, new, name, tmp_path / "weights.npz", optimizers)
    assert list(found) in rungs
    assert found[6].startswith(VARIANCE[name])


def test_another_computation_in_keras_3_is_found(keras_3, tmp_path, monkeypatch):
    monkeypatch.setattr(keras_3.layers.ReLU, "call", lambda self, x: keras_3.ops.leaky_relu(x))
    found = differences(KERAS_2, KERAS_3, "image", tmp_path / "weights.npz")
    assert found[2].startswith("output of re_lu: relative error") and {3, 4, 5, 6, 7} <= set(found)


def differences(old, new, name, path, optimizers=None):
    """Return the messages of the rungs at which NEW, with the weights of OLD, differs from it."""
    facts = inspected(MODULES[old] + name)
    known = {"inputs": facts["inputs"], "target": facts["target"]}
    of_old, of_new = (
        described(MODULES[arm] + name, optimizer=(optimizers or {}).get(arm), **known) for arm in (old, new)
    )
    expected = answers(old, of_old, save=str(path))
    changes = {"the batch reversed": answers(old, dict(of_old, weights=str(path)), flip=True)}
    rounding = reference.measure_rounding(changes, expected, precision="fp32")
    found = reference.findings(answers(new, dict(of_new, weights=str(path))), expected, rounding)
    assert {one.rung for one in found} >= {1, 3, 4, 5, 6, 7, 8} | ({2} if name != "Subclassed" else set())
    return {one.rung: one.message for one in found if one.status != "agrees"}


def answers(framework, model, save=None, flip=False):
    """Return the worker's answers to parity in both phases, merged; the second starts from the weights of the first."""
    numbers, module = {}, frameworks.load(framework)
    for phase in ("infer", "train"):
        subject = subjects.find(module, None, "smoke", 3, "float32", model=model)
        saved = save if phase == "infer" else None
        numbers.update(agreement.check(module, subject, phase, save=saved, flip=flip))
        model = dict(model, weights=save or model["weights"])
    return numbers


def test_models_of_keras_2_and_keras_3_are_told_apart_in_one_process(keras_3):
    import keras_models
    import tf_keras_models

    assert [specs.framework_of(module.image()) for module in (keras_models, tf_keras_models)] == [
        "keras",
        "tensorflow",
    ]


def test_all_outputs_are_computed_and_compared():
    contract.all_outputs_are_returned("tensorflow", MODULE + "heads", ["1", "2"], [(32, 5), (32, 4)])


def test_a_head_that_the_loss_does_not_reach_has_no_gradient_and_stays():
    arm = Arm("tensorflow", MODULE + "heads")
    before, gradients = arm.stored(), arm.gradients()
    arm.losses(2)
    after = arm.stored()
    assert not gradients["dense_1/kernel"].any() and gradients["dense/kernel"].any()
    numpy.testing.assert_array_equal(before["dense_1/kernel"], after["dense_1/kernel"])
    assert (before["dense/kernel"] != after["dense/kernel"]).any()


@pytest.mark.parametrize(
    ("name", "loss", "shape"),
    [
        ("compiled", "mean_squared_error and Adam, as compiled", [32, 5]),
        ("labelled", "SparseCategoricalCrossentropy and SGD, as compiled", [32]),
    ],
)
def test_a_compiled_model_trains_with_its_own_loss_and_optimizer(name, loss, shape):
    found = inspected(MODULE + name)
    assert (found["loss"], found["target"]["shape"], found["untrained"]) == (loss, shape, None)
    arm, hand = (Arm("tensorflow", MODULE + name) for _ in range(2))
    expected = []
    for _ in range(4):
        hand.net.reset_metrics()
        expected.append(float(hand.net.train_on_batch(hand.inputs[0], hand.batch[-1])))
    assert arm.losses(4) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("OwnStep", "it trains by its own train_step"),
        (
            "unknown_loss",
            "it is compiled with the loss <lambda>, and Stele does not know which targets this loss takes",
        ),
    ],
)
def test_a_training_of_the_users_own_is_not_replaced(name, reason):
    assert re.match(reason, inspected(MODULE + name)["untrained"])
    arm = Arm("tensorflow", MODULE + name)
    arm.infer()
    for compute in (arm.losses, arm.gradients):
        with pytest.raises(SpecError, match=reason + ".*--phase infer, or write a recipe"):
            compute()


def test_a_rate_that_is_no_dropout_stays():
    net = Arm("tensorflow", MODULE + "rates", quiet=True).net
    assert [layer.rate for layer in net.layers[-2:]] == [0.5, 0.0]
