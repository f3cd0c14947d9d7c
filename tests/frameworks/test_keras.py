"""Derived recipes in Keras 3 on the backend that KERAS_BACKEND names. Run where both are installed."""

import json
import os
import re
import subprocess
import sys

import keras
import numpy
import pytest

from stele_worker import agreement, frameworks, subjects
from stele_worker.frameworks.keras import model_layers
from stele_worker.models import inspection
from stele_worker.models.errors import SpecError, UserCodeError
from tests.frameworks import contract
from tests.frameworks.contract import Arm, described

SPECS = [
    "keras_models:" + name
    for name in ("two_inputs", "named", "image", "recurrent", "regularised", "nested", "Subclassed", "built")
]
MODULE = "keras_models:"
DROPPING = ["keras_models:image", "keras_models:recurrent", "keras_models:Subclassed"]

pytestmark = pytest.mark.filterwarnings("default")  # frameworks warn of each other


@pytest.fixture(scope="module", autouse=True)
def configured():
    contract.configure("keras")


def inspected(spec, **changes):
    found = inspection.inspect(described(spec, **changes))
    json.dumps(found, allow_nan=False)
    return found


@pytest.mark.parametrize("spec", SPECS)
def test_the_facts_are_of_what_is_stored(spec):
    contract.facts_are_of_what_is_stored("keras", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_the_loss_falls(spec):
    contract.loss_falls("keras", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_two_constructions_give_equal_weights(spec):
    contract.construction_repeats("keras", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_what_is_stored_loads_into_a_second_network(spec, tmp_path):
    contract.round_trip_is_exact("keras", spec, tmp_path / "weights.npz")


def test_what_is_stored_loads_in_another_process(tmp_path):
    contract.round_trip_is_exact_in_another_process("keras", "keras_models:image", tmp_path / "weights.npz")


@pytest.mark.parametrize("spec", SPECS)
def test_without_dropout_training_repeats(spec):
    contract.without_dropout_training_repeats("keras", spec, lambda arm: arm.gradients())


@pytest.mark.parametrize("spec", DROPPING)
def test_with_dropout_two_steps_differ(spec):
    if keras.backend.backend() == "jax":  # gradients leave the state of the generator as it is
        losses = Arm("keras", spec).losses(2), Arm("keras", spec, quiet=True).losses(2)
        assert losses[0] != losses[1]
    else:
        contract.with_dropout_two_steps_differ("keras", spec)


MIXED = """import keras
class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.first = keras.layers.Dense(8, dtype="mixed_bfloat16")
        self.last = keras.layers.Dense(3, dtype="float32")
    def call(self, x, training=False):
        return self.last(self.first(x))
def functional():
    net = Net()
    x = keras.Input((4,))
    return keras.Model(x, net.last(net.first(x)))
"""


@pytest.mark.parametrize(("name", "layers"), [("Net", {}), ("functional", {"dense": "bfloat16", "dense_1": "float32"})])
@pytest.mark.parametrize("phase", ["train", "infer"])
def test_layers_that_compute_in_half_precision_are_known(tmp_path, name, layers, phase):
    (tmp_path / "mixed.py").write_text(MIXED)
    given = {"inputs": [{"name": None, "kind": "float", "shape": [5, 4], "high": None}]}
    model = described(f"{tmp_path}/mixed.py:{name}", **given)
    module = frameworks.load("keras")
    subject = subjects.find(module, None, "smoke", 3, "float32", model=model)
    facts = agreement.check(module, subject, phase)["dtypes"]
    assert facts["parameters"] == {}
    assert facts["layers"] == layers
    assert "bfloat16" in facts["others"]


@pytest.mark.parametrize("spec", ["keras_models:image"])
def test_parity_sees_the_running_statistics(spec):
    contract.parity_sees_the_running_statistics("keras", spec, "moving_mean", "moving_variance")


@pytest.mark.parametrize("spec", SPECS)
def test_parity_sees_every_update(spec):
    contract.parity_sees_every_update("keras", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_inference_repeats_whatever_the_dropout(spec):
    contract.inference_repeats("keras", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_gradients_are_of_the_trainable_parameters(spec):
    arm = Arm("keras", spec)
    names = arm.recipe.parameter_names(arm.net, arm.net.trainable_variables)
    contract.gradients_are_of("keras", spec, names)


@pytest.mark.parametrize("spec", SPECS)
def test_two_inference_calls_agree_in_an_inspection(spec):
    assert inspected(spec)["deterministic"]


@pytest.mark.parametrize("spec", ["keras_models:two_inputs", "keras_models:image", "keras_models:regularised"])
def test_five_steps_equal_train_on_batch(spec):
    arm, hand = Arm("keras", spec, quiet=True), Arm("keras", spec, quiet=True)
    logits = not spec.endswith("image")
    hand.net.compile(keras.optimizers.SGD(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=logits))
    x = hand.inputs if len(hand.inputs) > 1 else hand.inputs[0]
    expected = []
    for _ in range(5):
        expected.append(float(hand.net.train_on_batch(x, hand.batch[-1])))
        hand.net.reset_metrics()
    assert arm.losses() == pytest.approx(expected, rel=1e-6)


def test_the_users_optimizer_is_made_with_its_defaults():
    arm = Arm("keras", "keras_models:two_inputs", optimizer="keras.optimizers:Adam")
    losses = arm.losses(10)
    assert losses[-1] < losses[0]
    assert losses != Arm("keras", "keras_models:two_inputs").losses(10)


def test_activations_come_in_the_order_of_execution():
    arm = Arm("keras", "keras_models:image")
    layers = arm.recipe.activations(arm.net, arm.task)(*arm.inputs)
    assert list(layers) == ["conv2d", "batch_normalization", "re_lu", "dropout", "flatten", "dense"]
    numpy.testing.assert_allclose(arm.fetch(list(layers.values())[-1]), arm.infer(), rtol=1e-6)


def test_bfloat16_computes_in_bfloat16_and_answers_in_float32():
    arm, exact = (Arm("keras", "keras_models:two_inputs", dtype=dtype) for dtype in ("bfloat16", "float32"))
    assert arm.infer() == pytest.approx(exact.infer(), abs=0.05)
    assert (arm.infer() != exact.infer()).any()


def test_the_inputs_are_those_of_the_graph():
    found = inspected("keras_models:two_inputs")
    assert [(each["kind"], each["shape"], each["high"]) for each in found["inputs"]] == [
        ("float", [32, 8], None),
        ("int", [32, 64], 50),
    ]
    assert (found["framework"], found["output"]) == ("keras", [32, 5])
    assert [each["name"] for each in inspected("keras_models:named")["inputs"]] == ["x", "ids"]


def test_layers_of_nested_models_are_numbered_in_their_order():
    arm = Arm("keras", "keras_models:nested")
    kernels = {name: value.shape for name, value in arm.stored().items() if re.match(r"dense(_\d)?/kernel", name)}
    assert kernels == {"dense/kernel": (8, 8), "dense_1/kernel": (8, 8), "dense_2/kernel": (8, 6)}
    first = arm.net.layers[1].layers[0].kernel
    numpy.testing.assert_array_equal(arm.stored()["dense/kernel"], keras.ops.convert_to_numpy(first))


def test_a_softmax_at_the_end_of_a_nested_model_makes_probabilities():
    x = keras.Input((4,))
    last = keras.Sequential([keras.layers.Dense(3, activation="relu"), keras.layers.Dense(2, activation="softmax")])
    assert model_layers.ends_in_softmax(keras.Model(x, last(x)))
    first = keras.Sequential([keras.layers.Dense(3, activation="softmax"), keras.layers.Dense(2)])
    assert not model_layers.ends_in_softmax(keras.Model(x, first(x)))


def test_a_model_of_keras_applications_is_found_by_name():
    found = inspected("keras:MobileNetV2")
    assert found["inputs"][0]["shape"] == [8, 224, 224, 3]
    assert found["output"] == [8, 1000]


def test_inputs_that_cannot_be_inferred_are_asked_for():
    with pytest.raises(SpecError, match="cannot be inferred. Add for example: --input 8x3x64x64"):
        inspected("keras_models:Unknown")
    given = [{"name": None, "kind": "float", "shape": [4, 6], "high": None}]
    assert inspected("keras_models:Unknown", inputs=given)["output"] == [4, 3]


def test_wrong_inputs_are_quoted_with_the_frameworks_message():
    given = [{"name": None, "kind": "float", "shape": [4, 9, 9, 5], "high": None}]
    with pytest.raises(SpecError, match="--input 4x9x9x5\n"):
        inspected("keras_models:image", inputs=given)


def test_a_name_that_keras_applications_lacks_is_answered_with_the_nearest():
    with pytest.raises(SpecError, match="Did you mean 'ResNet50'"):
        inspected("keras:Resnet50")


def test_what_the_users_code_raises_is_shown_with_the_users_frames_alone():
    with pytest.raises(UserCodeError, match="keras_models:broken raised KeyError: 'no such width'\n.*keras_models.py"):
        inspected("keras_models:broken")


def test_a_module_that_asks_for_another_backend_is_refused(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "mlx")
    with pytest.raises(SpecError, match="sets KERAS_BACKEND to 'mlx', but Keras runs on"):
        contract.loss_falls("keras", SPECS[0])


def test_nothing_is_left_in_the_project():
    contract.nothing_is_left_in_the_project()


def test_a_mode_of_the_backend_executes_the_inference(monkeypatch):
    native = frameworks.load("keras").native
    called = []
    monkeypatch.setattr(frameworks.load("keras"), "compiled", lambda function, **options: called.append(1) or function)
    monkeypatch.setattr(native, "compiled", lambda function, **options: called.append(1) or function)
    contract.loss_falls("keras", SPECS[0])
    assert called


def test_keras_on_jax_does_not_import_tensorflow():
    """An import of TensorFlow would count as memory of Keras on JAX."""
    code = (
        "import sys; from tests.frameworks import contract; contract.configure('keras'); "
        "sys.exit('tensorflow' in sys.modules)"
    )
    on_jax = {**os.environ, "KERAS_BACKEND": "jax"}
    assert subprocess.run([sys.executable, "-c", code], env=on_jax, cwd=contract.REPOSITORY).returncode == 0


@pytest.mark.parametrize(
    ("in_file", "variable", "backend"),
    [("jax", "", "jax"), ("jax", "torch", "torch")],
    ids=["file", "variable"],
)
def test_a_users_model_runs_with_the_settings_of_the_user(tmp_path, in_file, variable, backend):
    chosen = {"floatx": "float16", "image_data_format": "channels_first", "backend": in_file}
    (tmp_path / "keras.json").write_text(json.dumps(chosen))
    flags = contract.flags_of_a_users_model("keras", KERAS_HOME=str(tmp_path), KERAS_BACKEND=variable)
    assert flags["backend"] == backend
    assert flags["dtype_policy"] == "float16"
    assert flags["image_data_format"] == "channels_first"


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="only TensorFlow asks whether to use XLA")
def test_a_users_model_is_compiled_as_fit_compiles_it(monkeypatch):
    monkeypatch.setattr(frameworks.load("keras"), "tuned", False)
    backend = frameworks.part("keras", "recipe").backend
    arm = Arm("keras", SPECS[0])
    assert backend.uses_xla(arm.net) is arm.net.jit_compile
    arm.net.jit_compile = not arm.net.jit_compile
    assert backend.uses_xla(arm.net) is arm.net.jit_compile


def test_all_outputs_are_computed_and_compared():
    contract.all_outputs_are_returned("keras", MODULE + "heads", ["1", "2"], [(32, 5), (32, 4)])


def test_a_head_that_the_loss_does_not_reach_has_no_gradient_and_stays():
    arm = Arm("keras", MODULE + "heads")
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
    arm, hand = (Arm("keras", MODULE + name) for _ in range(2))
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
    arm = Arm("keras", MODULE + name)
    arm.infer()
    for compute in (arm.losses, arm.gradients):
        with pytest.raises(SpecError, match=reason + ".*--phase infer, or write a recipe"):
            compute()


def test_a_rate_that_is_no_dropout_stays():
    net = Arm("keras", MODULE + "rates", quiet=True).net
    assert [layer.rate for layer in net.layers[-2:]] == [0.5, 0.0]


def test_no_other_flag_than_training_is_passed():
    contract.training_is_told("keras", MODULE + "Flags", "training")


def test_a_loss_of_several_outputs_is_not_replaced(monkeypatch):
    import keras_models

    def compiled():
        net = keras_models.heads()
        net.compile("sgd", ["mse", "mse"])
        return net

    monkeypatch.setattr(keras_models, "compiled", compiled)
    assert inspected(MODULE + "compiled")["untrained"].startswith("it is compiled with a loss for 2 outputs")
