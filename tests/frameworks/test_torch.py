"""Derived recipes in PyTorch. Run where torch and transformers are installed."""

import json
from functools import partial

import numpy
import pytest
import torch
from torch import nn

from stele.parity import ladder, reference
from stele_worker import agreement, frameworks, measurement, protocol, subjects
from stele_worker.frameworks.torch import model_training
from stele_worker.models import inspection, reads, sources
from stele_worker.models.errors import SpecError, UserCodeError, WeightsError
from stele_worker.protocol import SetupError
from tests.frameworks import contract
from tests.frameworks.contract import Arm, described

TINY = ["bert", "gpt_neox", "llama", "vit", "whisper", "qwen3", "t5"]
OWN = ["TwoInputs", "image", "Attention", "Tiny", "Regression", "frozen"]
SPECS = ["torch_models:" + name for name in OWN] + ["hf-tiny:" + name for name in TINY]
DROPPING = ["torch_models:image", "torch_models:Attention", "hf-tiny:bert", "hf-tiny:t5"]

pytestmark = pytest.mark.filterwarnings("default")  # frameworks warn of each other


@pytest.fixture(scope="module", autouse=True)
def configured():
    contract.configure("torch")


@pytest.fixture
def module():
    """The user's module, to which a test may add."""
    return sources.find(described("torch_models:image")).module


def inspected(spec, **changes):
    found = inspection.inspect(described(spec, **changes))
    json.dumps(found, allow_nan=False)
    return found


@pytest.mark.parametrize("spec", SPECS)
def test_the_facts_are_of_what_is_stored(spec):
    contract.facts_are_of_what_is_stored("torch", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_the_loss_falls(spec):
    contract.loss_falls("torch", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_two_constructions_give_equal_weights(spec):
    contract.construction_repeats("torch", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_what_is_stored_loads_into_a_second_network(spec, tmp_path):
    contract.round_trip_is_exact("torch", spec, tmp_path / "weights.npz")


@pytest.mark.parametrize("spec", ["torch_models:image", "hf-tiny:t5"])
def test_what_is_stored_loads_in_another_process(spec, tmp_path):
    contract.round_trip_is_exact_in_another_process("torch", spec, tmp_path / "weights.npz")


@pytest.mark.parametrize("spec", SPECS)
def test_without_dropout_training_repeats(spec):
    contract.without_dropout_training_repeats("torch", spec)


@pytest.mark.parametrize("spec", DROPPING)
def test_with_dropout_two_steps_differ(spec):
    contract.with_dropout_two_steps_differ("torch", spec)


@pytest.mark.parametrize("spec", ["torch_models:image"])
def test_parity_sees_the_running_statistics(spec):
    contract.parity_sees_the_running_statistics("torch", spec, "running_mean", "running_var", "num_batches_tracked")


@pytest.mark.parametrize("spec", SPECS)
def test_parity_sees_every_update(spec):
    contract.parity_sees_every_update("torch", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_inference_repeats_whatever_the_dropout(spec):
    contract.inference_repeats("torch", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_gradients_are_of_the_trainable_parameters(spec):
    net = Arm("torch", spec).net
    trainable = [name for name, weight in net.named_parameters() if weight.requires_grad]
    contract.gradients_are_of("torch", spec, trainable)


@pytest.mark.parametrize("spec", SPECS)
def test_two_inference_calls_agree_in_an_inspection(spec):
    assert inspected(spec)["deterministic"]


@pytest.mark.parametrize("spec", ["torch_models:TwoInputs", "torch_models:image"])
def test_five_steps_equal_a_loop_by_hand(spec):
    arm, hand = Arm("torch", spec, quiet=True), Arm("torch", spec, quiet=True)
    optimizer = torch.optim.SGD(hand.net.parameters(), lr=0.01)
    expected = []
    for _ in range(5):
        hand.net.train()
        optimizer.zero_grad()
        value = nn.functional.cross_entropy(hand.net(*hand.inputs), hand.batch[-1])
        value.backward()
        optimizer.step()
        expected.append(value.item())
    assert arm.losses() == pytest.approx(expected, rel=1e-6)


def test_a_hugging_face_model_trains_on_its_own_loss_with_the_users_optimizer():
    arm = Arm("torch", "hf-tiny:llama", optimizer="torch.optim:AdamW")
    hand = Arm("torch", "hf-tiny:llama")
    optimizer, expected = torch.optim.AdamW(hand.net.parameters()), []
    ids, mask, labels = hand.batch
    for _ in range(5):
        optimizer.zero_grad()
        value = hand.net(input_ids=ids, attention_mask=mask, labels=labels).loss
        value.backward()
        optimizer.step()
        expected.append(value.item())
    assert arm.losses() == pytest.approx(expected, rel=1e-6)


def test_bfloat16_computes_in_bfloat16_and_answers_in_float32():
    arm = Arm("torch", "torch_models:TwoInputs", dtype="bfloat16")
    exact = Arm("torch", "torch_models:TwoInputs")
    assert arm.infer() == pytest.approx(exact.infer(), abs=0.02)
    assert (arm.infer() != exact.infer()).any()
    losses = arm.losses()
    assert losses[-1] < losses[0]


def test_activations_come_in_the_order_of_execution():
    arm = Arm("torch", "torch_models:image")
    layers = arm.recipe.activations(arm.net, arm.task)(*arm.inputs)
    assert list(layers) == ["0", "1", "2", "3", "4", "5"]
    assert layers["0"].shape == (8, 8, 62, 62)
    assert (layers["1"] < 0).any()  # the ReLU after it works in place
    numpy.testing.assert_array_equal(arm.fetch(layers["5"]), arm.infer())


def test_the_inputs_are_those_of_example_inputs():
    found = inspected("torch_models:TwoInputs")
    assert found["inferred_from"] == "example_inputs()"
    assert found["inputs"] == [
        {"name": "x", "kind": "float", "shape": [4, 8], "high": None, "dtype": "float32"},
        {"name": "ids", "kind": "int", "shape": [4, 6], "high": 50, "dtype": "int64"},
    ]
    assert found["examples"] is None  # zeros say only shapes
    assert found["output"] == [4, 5]
    assert found["target"] == {"name": None, "kind": "int", "shape": [4], "high": 5, "dtype": None}
    assert found["loss"] == "cross-entropy over the last axis"
    assert found["parameters"] == 8 * 16 + 16 + 50 * 16 + 6 + 16 * 5 + 5
    assert found["framework"] == "torch"


@pytest.mark.parametrize("place", ["model", "module"])
def test_the_values_of_example_inputs_are_computed_with(place, module, monkeypatch):
    given = {"x": numpy.arange(16).reshape(2, 8) / 16, "ids": torch.tensor([[0, 1], [2, 0]])}
    holder = module if place == "module" else module.TwoInputs
    monkeypatch.delattr(module.TwoInputs, "example_inputs")
    monkeypatch.setattr(holder, "example_inputs", lambda *self: given, raising=False)
    found = inspected("torch_models:TwoInputs")
    assert found["examples"] == place
    changes = {name: found[name] for name in ("inputs", "target", "examples")}
    x, ids, labels = Arm("torch", "torch_models:TwoInputs", **changes).batch
    numpy.testing.assert_array_equal(x, given["x"].astype("float32"))
    assert ids.tolist() == [[0, 1], [2, 0]]
    assert len(labels) == 2


def test_labels_among_the_examples_are_the_target(module, monkeypatch):
    given = {"idx": torch.tensor([[1, 2], [3, 0]]), "targets": torch.tensor([[2, 3], [0, 29]])}
    monkeypatch.setattr(module, "example_inputs", lambda: given, raising=False)
    found = inspected("torch_models:Tiny")
    assert [each["name"] for each in found["inputs"]] == ["idx"]
    changes = {name: found[name] for name in ("inputs", "target", "examples")}
    idx, targets = Arm("torch", "torch_models:Tiny", **changes).batch
    assert torch.equal(idx, given["idx"]) and torch.equal(targets, given["targets"])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_an_input_of_a_tensor_keeps_its_dtype(dtype, module, monkeypatch):
    given = torch.tensor([[0.5] * 5, [1.5] * 5], dtype=dtype)
    monkeypatch.setattr(module, "example_inputs", lambda: given, raising=False)
    monkeypatch.setattr(module, "typed", lambda: module.Regression().to(dtype), raising=False)
    found = inspected("torch_models:typed")
    assert found["inputs"][0]["dtype"] == str(dtype).removeprefix("torch.")
    arm = Arm("torch", "torch_models:typed")
    assert torch.equal(arm.batch[0], given) and arm.batch[0].dtype == dtype


def test_doubles_of_numpy_are_no_doubles_in_torch(module, monkeypatch):
    monkeypatch.setattr(module, "example_inputs", lambda: numpy.zeros((2, 5)), raising=False)
    assert inspected("torch_models:Regression")["inputs"][0]["dtype"] == "float32"


def test_a_function_that_draws_its_inputs_returns_the_same_in_every_process(module, monkeypatch):

    def draw():
        return numpy.random.randn(2, 5) + torch.randn(2, 5).numpy()

    monkeypatch.setattr(module, "example_inputs", draw, raising=False)
    first, second = (Arm("torch", "torch_models:Regression").batch[0] for _ in range(2))
    assert torch.equal(first, second)


def test_an_encoder_of_an_encoder_decoder_gets_no_inputs_of_the_decoder(tmp_path):
    text = "from transformers import T5Config, {0} as kind\ndef make():\n    return kind(T5Config(num_layers=1))"
    (tmp_path / "net.py").write_text(text.format("T5EncoderModel"))
    names = [each["name"] for each in inspected(f"{tmp_path}/net.py:make")["inputs"]]
    assert names == ["input_ids", "attention_mask"]


def test_the_inputs_are_those_of_the_first_layer():
    found = inspected("torch_models:image")
    assert found["inferred_from"] == "the signature and the first layer"
    assert found["inputs"] == [{"name": None, "kind": "float", "shape": [8, 3, 64, 64], "high": None, "dtype": None}]


def test_a_model_with_targets_gets_them_for_every_token():
    found = inspected("torch_models:Tiny")
    assert found["inputs"][0]["shape"] == [16, 64]
    assert found["target"] == {"name": "targets", "kind": "int", "shape": [16, 64], "high": 30, "dtype": None}
    assert found["loss"] == "the model's own"


def test_a_single_output_is_trained_by_its_squared_error():
    found = inspected("torch_models:Regression")
    assert found["loss"] == "mean squared error"
    assert found["target"] == {"name": None, "kind": "float", "shape": [32, 1], "high": None, "dtype": None}


def test_inputs_of_the_command_line_come_first():
    given = [{"name": "x", "kind": "float", "shape": [2, 8], "high": None}]
    given.append({"name": "ids", "kind": "int", "shape": [2, 3], "high": None})
    found = inspected("torch_models:TwoInputs", inputs=given)
    assert found["inferred_from"] == "the command line"
    assert found["inputs"][1]["high"] == 50  # of the embedding
    assert found["output"] == [2, 5]


@pytest.mark.parametrize("name", TINY)
def test_a_hugging_face_models_loss_is_its_own(name):
    found = inspected("hf-tiny:" + name)
    assert found["loss"] == "the model's own"
    assert found["target"]["name"] == "labels"
    assert found["parameters"] < 500_000


@pytest.mark.parametrize(
    ("architectures", "output"), [(["BertForSequenceClassification"], [4, 2]), (None, [4, 128, 99])]
)
def test_a_hugging_face_folder_names_its_class_and_the_dtype_of_its_parameters(tmp_path, architectures, output):
    config = {"architectures": architectures, "model_type": "bert", "dtype": "bfloat16"}
    config.update(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, vocab_size=99)
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = inspected(f"hf:{tmp_path}")
    assert found["output"] == output
    assert found["inputs"][0]["high"] == 99
    assert Arm("torch", f"hf:{tmp_path}").net.dtype == torch.bfloat16


def test_what_was_inspected_is_resolved_without_building_the_model():
    found = inspected("torch_models:image")
    model = described("torch_models:broken", inputs=found["inputs"], target=found["target"])
    task, _ = inspection.resolve(model, "torch", "smoke", 0, "float32")
    assert (task.batch, task.train, task.test) == (8, 80, 40)


def test_pretrained_weights_are_loaded(tmp_path):
    from safetensors.torch import save_file

    arm = Arm("torch", "torch_models:Tiny")
    weight = torch.randn(30, 16).to(torch.bfloat16)
    save_file({"head.weight": weight}, tmp_path / "tied.safetensors")
    loaded = Arm("torch", "torch_models:Tiny", pretrained=str(tmp_path / "tied.safetensors"))
    numpy.testing.assert_array_equal(loaded.stored()["tokens.weight"], weight.float().numpy())
    assert list(arm.stored()) == ["tokens.weight"]


def test_weights_of_another_shape_are_refused_by_name(tmp_path):
    arrays = Arm("torch", "torch_models:Regression").stored()
    numpy.savez(tmp_path / "w.npz", **dict(arrays, **{"dense.weight": numpy.zeros((2, 5), "float32")}))
    with pytest.raises(SpecError, match=r"'dense.weight' do not fit: .* \(1, 5\), the file has \(2, 5\)"):
        Arm("torch", "torch_models:Regression", weights=str(tmp_path / "w.npz"))


def test_inputs_that_cannot_be_inferred_are_asked_for_by_name():
    with pytest.raises(SpecError, match="cannot be inferred.* --input left=8x3x64x64 --input right=8x3x64x64"):
        inspected("torch_models:Named")


def test_wrong_inputs_are_quoted_with_the_frameworks_message():
    with pytest.raises(SpecError) as error:
        inspected("torch_models:Wrong")
    assert "--input 32x10" in str(error.value)
    assert "mat1 and mat2 shapes cannot be multiplied (32x20 and 10x20)" in str(error.value)
    assert "torch_models.py" in str(error.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("torch_models:TwoInput", "Did you mean 'TwoInputs'"),
        ("torch_modls:TwoInputs", "no module 'torch_modls'"),
        ("torch_models.py", "does not name a model"),
        ("no/such.py:x", "there is no file"),
        ("torch_models:needs", "requires arguments: width"),
        ("torch_models:nothing", "is not a model of PyTorch"),
        ("hf:bertt", "Did you mean 'bert'"),
        ("torchvision:resnet18", "torchvision"),
        ("timm:resnet18", "timm"),
    ],
)
def test_a_spec_that_names_no_model_is_answered_with_what_to_write(spec, message):
    with pytest.raises(SpecError, match=message):
        inspected(spec)


def test_what_the_users_code_raises_is_shown_with_the_users_frames_alone():
    with pytest.raises(UserCodeError) as error:
        inspected("torch_models:broken")
    lines = str(error.value).splitlines()
    assert lines[0] == "torch_models:broken raised KeyError: 'no such width'"
    assert [line for line in lines if "File" in line] == [lines[1]]
    assert "torch_models.py" in lines[1]


def test_a_module_that_cannot_be_imported_is_the_users_error():
    with pytest.raises(UserCodeError, match="a_package_that_nobody_has") as error:
        inspected("broken_import.py:model")
    assert "importlib" not in str(error.value)


def test_a_model_of_another_framework_is_refused():
    with pytest.raises(SpecError, match="is a model of PyTorch, but this environment runs JAX"):
        from stele_worker.models import building

        building.build_for(sources.find(described("torch_models:image")), "jax", 0)


def test_an_inspection_says_what_the_model_is_made_of():
    built = inspected("torch_models:Tiny")["built"]
    fact = {"shape": [30, 16], "dtype": "float32", "parameter": True}
    assert built == {
        "arrays": [{"name": "tokens.weight", **fact}, {"name": "head.weight", **fact}],
        "tied": [["tokens.weight", "head.weight"]],
        "training": True,
    }
    arrays = {each["name"]: each for each in inspected("torch_models:image")["built"]["arrays"]}
    assert not arrays["1.running_mean"]["parameter"]
    assert arrays["1.num_batches_tracked"]["dtype"] == "int64"


def test_the_dtype_and_the_mode_are_those_of_the_users_factory(module, monkeypatch):
    monkeypatch.setattr(module, "half", lambda: module.Regression().to(torch.bfloat16).eval(), raising=False)
    monkeypatch.setattr(module, "example_inputs", lambda: torch.ones(2, 5, dtype=torch.bfloat16), raising=False)
    built = inspected("torch_models:half")["built"]
    assert {each["dtype"] for each in built["arrays"]} == {"bfloat16"}
    assert built["training"] is False


def saved(spec, folder, **options):
    """Save the weights of a model as OLD does, and return them."""
    model = described(spec, inputs=options.pop("inputs", None))
    subject = subjects.find(frameworks.load("torch"), None, "paper", 3, "float32", model=model)
    agreement.check(frameworks.load("torch"), subject, "infer", save=str(folder / "w.npz"), **options)
    with numpy.load(folder / "w.npz") as arrays:
        return {name: arrays[name] for name in arrays.files}


def compared(spec, seed=3, redraw=False, **changes):
    """Return the answer of NEW, which also compares what it makes itself."""
    model = described(spec, **changes)
    reads.watch(model["folder"])
    reads.watch_libraries()
    subject = subjects.find(frameworks.load("torch"), None, "paper", seed, "float32", model=model)
    return agreement.check(frameworks.load("torch"), subject, "infer", own=True, redraw=redraw)


def test_parameters_with_other_names_are_loaded_from_the_checkpoint_of_the_library(tmp_path):
    arrays = saved("hf-tiny:bert", tmp_path, checkpoint=str(tmp_path / "checkpoint"))
    trained = {f"old.{name}": array for name, array in reversed(list(arrays.items()))}
    numpy.savez(tmp_path / "w.npz", **trained)  # names and an order that fit nothing
    changes = {"weights": str(tmp_path / "w.npz"), "checkpoint": str(tmp_path / "checkpoint")}
    contract.assert_equal(Arm("torch", "hf-tiny:bert", **changes).stored(), arrays)
    found = compared("hf-tiny:bert", **changes)
    assert found["weights"] == {"names": {}, "way": "checkpoint", "guess": False}
    assert found["unequal"] == found["own"] == {}


@pytest.mark.parametrize("checkpoint", [False, True])
def test_equal_names_are_used_before_a_checkpoint(tmp_path, checkpoint):
    arrays = saved("hf-tiny:bert", tmp_path, checkpoint=str(tmp_path / "checkpoint"))
    folder = tmp_path / "checkpoint" if checkpoint else tmp_path / "none"
    found = compared("hf-tiny:bert", weights=str(tmp_path / "w.npz"), checkpoint=str(folder))
    assert found["weights"]["way"] == "names"
    assert set(found["weights"]["names"]) >= set(arrays) - {"cls.predictions.bias"}


def test_a_checkpoint_without_some_parameters_is_refused_by_name(tmp_path):
    from safetensors.torch import load_file, save_file

    saved("hf-tiny:bert", tmp_path, checkpoint=str(tmp_path / "checkpoint"))
    path = tmp_path / "checkpoint" / "model.safetensors"
    tensors = load_file(path)
    lacking = next(name for name in tensors if name.endswith("query.weight"))
    save_file({name: value for name, value in tensors.items() if name != lacking}, path, {"format": "pt"})
    numpy.savez(tmp_path / "w.npz", x=numpy.zeros(3))
    changes = {"weights": str(tmp_path / "w.npz"), "checkpoint": str(tmp_path / "checkpoint")}
    with pytest.raises(WeightsError, match=f"does not find {lacking} in the checkpoint"):
        Arm("torch", "hf-tiny:bert", **changes)


def test_a_model_of_no_library_writes_no_checkpoint(tmp_path):
    saved("torch_models:image", tmp_path, checkpoint=str(tmp_path / "checkpoint"))
    assert not (tmp_path / "checkpoint").exists()


READERS = {  # of w.pt and w.safetensors
    "torch": "state = torch.load('{0}/w.pt')",
    "safetensors": "from safetensors.torch import load_file; state = load_file('{0}/w.safetensors')",
    "transformers": "from safetensors import safe_open; file = safe_open('{0}/w.safetensors', 'pt'); "
    "state = {{name: file.get_tensor(name) for name in file.keys()}}",
}
FACTORY = """import torch
def make():
    net = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Linear(4, 3))
    {0}
    net[0].load_state_dict(state)
    {1}
    return net
"""


@pytest.mark.parametrize("reader", READERS)
def test_weights_from_files_are_told_from_those_that_are_drawn(tmp_path, reader):
    from safetensors.torch import save_file

    state = {"weight": torch.randn(4, 5), "bias": torch.zeros(4)}
    torch.save(state, tmp_path / "w.pt")
    save_file(state, tmp_path / "w.safetensors")
    old, new = tmp_path / f"old_{reader}.py", tmp_path / f"new_{reader}.py"
    old.write_text(FACTORY.format(READERS[reader].format(tmp_path), ""))
    new.write_text(FACTORY.format(READERS[reader].format(tmp_path), "net[0].weight.data += 1"))
    saved(f"{old}:make", tmp_path)
    reads.read.clear()
    found = compared(f"{old}:make", weights=str(tmp_path / "w.npz"))
    assert found["own"] == {}
    assert found["files"] == ["w.pt" if reader == "torch" else "w.safetensors"]
    seeded = compared(f"{old}:make", weights=str(tmp_path / "w.npz"), seed=4)
    assert seeded["equal"] == ["0.weight", "0.bias"]
    assert list(seeded["own"]) == ["1.weight", "1.bias"]
    assert seeded["sizes"] == {"1.weight": 12, "1.bias": 3}
    assert list(compared(f"{new}:make", weights=str(tmp_path / "w.npz"))["own"]) == ["0.weight"]


BUILT = """import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 5)
        {0}
    def forward(self, x):
        return {1}
"""
WINDOW = "self.register_buffer('window', torch.hann_window(16, periodic={0}))", "self.layer(x * self.window)"
SCALE = "self.scale = torch.nn.Parameter(torch.tensor({0}))", "self.layer(x) * self.scale"
CONSTANT = "self.shift = torch.nn.Parameter(torch.full((5,), {0}))", "self.layer(x) + self.shift"


@pytest.mark.parametrize(("code", "values"), [(WINDOW, (True, False)), (SCALE, (2.0, 4.0)), (CONSTANT, (0.0, 0.1))])
def test_what_new_builds_without_a_seed_is_compared_whatever_its_size(tmp_path, code, values):
    [name] = [name for name in ("window", "scale", "shift") if f"self.{name} " in code[0] or f"'{name}'" in code[0]]
    for arm, value in zip(("old", "new"), values, strict=True):
        (tmp_path / f"{arm}_{name}.py").write_text(BUILT.format(code[0].format(value), code[1]))
    given = {"inputs": [{"name": None, "kind": "float", "shape": [4, 16], "high": None}]}
    old, new = (f"{tmp_path}/{arm}_{name}.py:Net" for arm in ("old", "new"))
    saved(old, tmp_path, inputs=given["inputs"])
    weights = {"weights": str(tmp_path / "w.npz"), **given}
    assert list(compared(new, **weights)["own"]) == [name]
    again, seeded = compared(old, **weights), compared(old, **weights, seed=4)
    found, said = reference.weight_differences(compared(new, **weights), again, seeded)
    assert said == []
    assert found[0].startswith(f"{name} has other values in NEW, and another seed does not change it")


EXACT = "self.register_buffer('ids', torch.arange(2**60, 2**60 + 5) + {0})", "self.layer(x) + self.ids % 7"
OUTLIER = "self.scale = torch.nn.Parameter(torch.tensor([1e6, {0}, 1, 1, 1]))", "self.layer(x) * self.scale"
DOUBLE = (
    "self.register_buffer('step', torch.ones(5, dtype=torch.double) / {0})",
    "self.layer(x) + self.step.float()",
)
MISSING = "self.register_buffer('mask', torch.tensor([{0}, float('nan'), 1, 1, 1]))", "self.layer(x)"


@pytest.mark.parametrize(
    ("code", "values", "name"),
    [
        (EXACT, (0, 1), "ids"),
        (OUTLIER, (1.0, 5.0), "scale"),
        (DOUBLE, (3, 3.0000001), "step"),
        (MISSING, (1.0, 1.5), "mask"),
    ],
)
def test_each_element_that_new_builds_itself_is_compared_with_all_its_digits(tmp_path, code, values, name):
    for arm, value in zip(("old", "new"), values, strict=True):
        (tmp_path / f"{arm}_{name}.py").write_text(BUILT.format(code[0].format(value), code[1]))
    given = {"inputs": [{"name": None, "kind": "float", "shape": [4, 16], "high": None}]}
    old, new = (f"{tmp_path}/{arm}_{name}.py:Net" for arm in ("old", "new"))
    saved(old, tmp_path, inputs=given["inputs"])
    weights = {"weights": str(tmp_path / "w.npz"), **given}
    again, found = compared(old, **weights), compared(new, **weights)
    assert again["own"] == {} and again["unequal"] == found["unequal"] == {}
    assert list(found["own"]) == [name]


TABLE = """import numpy, torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        table = torch.arange(400.0).reshape(50, 8) * {0}
        self.table = torch.nn.Parameter(torch.cat([table, {1}]))
    def forward(self, x):
        return x @ self.table.T
"""
RANDOM = {
    "drawn": "torch.randn(2, 8)",
    "coins": "torch.randint(2, (2, 8)).float()",
    "unseeded": "torch.tensor(numpy.random.default_rng().random((2, 8)), dtype=torch.float)",
}


@pytest.mark.parametrize("kind", RANDOM)
def test_only_the_elements_that_another_seed_changes_may_differ(tmp_path, kind):
    for arm, factor in (("old", 1), ("new", 1.25), ("other", 1)):
        drawn = RANDOM[kind] if arm != "other" else "torch.rand(2, 8) * 9"
        (tmp_path / f"{arm}_{kind}.py").write_text(TABLE.format(factor, drawn))
    given = {"inputs": [{"name": None, "kind": "float", "shape": [4, 8], "high": None}]}
    old, new, other = (f"{tmp_path}/{arm}_{kind}.py:Net" for arm in ("old", "new", "other"))
    saved(old, tmp_path, inputs=given["inputs"])
    weights = {"weights": str(tmp_path / "w.npz"), **given}
    again, seeded = compared(old, **weights), compared(old, seed=4, redraw=True, **weights)
    found, said = reference.weight_differences(compared(new, **weights), again, seeded)
    assert said == []
    start = "table has other values in NEW, also where another seed does not change it (399 of its 416 numbers)"
    assert found[0].startswith(start)
    found, said = reference.weight_differences(compared(other, **weights), again, seeded)
    assert (found, said) == ([], ["NEW draws other initial weights from the same seed (table)"])


def test_all_elements_of_weights_that_two_seeds_often_draw_alike_may_differ(tmp_path):
    (tmp_path / "coins.py").write_text(TABLE.format(1, "(torch.rand(90, 8) < 0.9).float()"))
    given = {"inputs": [{"name": None, "kind": "float", "shape": [4, 8], "high": None}]}
    saved(f"{tmp_path}/coins.py:Net", tmp_path, inputs=given["inputs"])
    weights = {"weights": str(tmp_path / "w.npz"), **given}
    seeded, new = (compared(f"{tmp_path}/coins.py:Net", seed=seed, redraw=seed == 4, **weights) for seed in (4, 9))
    assert reference.weight_differences(new, {}, seeded)[0] == []


UNSEEDED = "import numpy; noise = numpy.random.default_rng().random(5)"
BUFFER = "self.register_buffer('noise', torch.tensor(noise.astype('float32')){0})"


@pytest.mark.parametrize(
    ("code", "output"),
    [
        (f"{UNSEEDED}; {BUFFER.format(', persistent=False')}", "self.layer(x) + self.noise"),
        ("import os; self.process = os.getpid", "self.layer(x) + self.process() % 1000"),
    ],
    ids=["buffer", "process"],
)
def test_a_model_that_differs_in_each_process_is_a_change_between_processes(tmp_path, code, output):
    (tmp_path / "net.py").write_text(BUILT.format(code, output))
    found = contract.change_between_processes("torch", f"{tmp_path}/net.py:Net", tmp_path, [4, 16])
    assert found is not None and found.startswith("logits: relative error")


def test_an_unseeded_buffer_that_is_saved_with_the_weights_is_the_same_in_each_process(tmp_path):
    (tmp_path / "net.py").write_text(BUILT.format(f"{UNSEEDED}; {BUFFER.format('')}", "self.layer(x) + self.noise"))
    assert contract.change_between_processes("torch", f"{tmp_path}/net.py:Net", tmp_path, [4, 16]) is None


def test_the_checkpoint_that_stele_wrote_is_no_file_of_the_user(tmp_path):
    saved("hf-tiny:bert", tmp_path, checkpoint=str(tmp_path / "checkpoint"))
    arrays = dict(numpy.load(tmp_path / "w.npz"))
    numpy.savez(tmp_path / "w.npz", **{f"old.{name}": array for name, array in reversed(list(arrays.items()))})
    reads.read.clear()
    changes = {"weights": str(tmp_path / "w.npz"), "checkpoint": str(tmp_path / "checkpoint")}
    assert compared("hf-tiny:bert", **changes)["files"] == []


def answered(spec, phase="train", flip=False, **changes):
    model = described(spec, **changes)
    subject = subjects.find(frameworks.load("torch"), None, "paper", 3, "float32", model=model)
    return agreement.check(frameworks.load("torch"), subject, phase, flip=flip)


def differences(module, old, new, **changes):
    """Return what parity says of two factories of a module, which build the same parameters from the same seed."""
    for name, factory in (("old_arm", old), ("new_arm", new)):
        setattr(module, name, factory)
    given = {"inputs": [{"name": None, "kind": "float", "shape": [8, 3, 6, 6], "high": None}], **changes}
    expected = answered("torch_models:old_arm", **given)
    reversed_, numbers = (
        answered("torch_models:old_arm", flip=True, **given),
        answered("torch_models:new_arm", **given),
    )
    rounding = reference.measure_rounding({"the batch reversed": reversed_}, expected, precision="fp32")
    return reference.findings(numbers, expected, rounding), reference.left_out(numbers, expected, rounding)


def normalised(**options):
    """Return a factory of a network whose first bias has a gradient of rounding alone."""

    def factory():
        layers = [
            nn.Conv2d(3, 8, 3),
            nn.BatchNorm2d(8, **options),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(128, 5),
        ]
        return nn.Sequential(*layers)

    return factory


class Averaging(nn.Module):
    """A model that keeps a moving average of its outputs."""

    def __init__(self, rate):
        super().__init__()
        self.layer, self.rate = nn.Linear(108, 5), rate
        self.register_buffer("average", torch.zeros(5))

    def forward(self, x):
        output = self.layer(x.flatten(1))
        if self.training and self.rate:
            self.average.lerp_(output.detach().mean(0), self.rate)
        return output


class Inverse(nn.BatchNorm2d):
    """Batch normalisation whose inference divides by another number. Its training and its state are the same."""

    def forward(self, x):
        return super().forward(x) if self.training else super().forward(x) * (1 + self.num_batches_tracked / 100)


def inverse():
    net = normalised()()
    net[1].__class__ = Inverse
    return net


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (normalised(), normalised(momentum=0.9), "updates differ (rung 6): update of 1.running_"),
        (normalised(), normalised(momentum=0.0), "updates differ (rung 6): update of 1.running_"),
        (partial(Averaging, 0.1), partial(Averaging, 0.2), "updates differ (rung 6): update of average after step"),
        (partial(Averaging, 0.1), partial(Averaging, 0), "updates differ (rung 6): update of average after step"),
        (normalised(), inverse, "losses differ (rung 7): inference after step 20"),
    ],
)  # fmt: skip
def test_what_training_changes_without_a_gradient_is_compared(module, old, new, message):
    found, _ = differences(module, old, new)
    assert ladder.message(ladder.first_difference(found)).startswith(message)
    assert ladder.first_difference(differences(module, old, old)[0]) is None


def another_kernel():
    net = normalised()()
    net[0].register_forward_pre_hook(lambda _, given: (given[0].to(memory_format=torch.channels_last),))
    return net


@pytest.mark.parametrize("optimizer", ["torch.optim:Adam", "torch.optim:AdamW", "torch.optim:RMSprop", None])
def test_what_an_optimizer_makes_of_a_gradient_of_rounding_is_no_difference(module, optimizer):
    found, left_out = differences(module, normalised(), another_kernel, optimizer=optimizer)
    assert ladder.first_difference(found) is None
    assert "update of 0.bias" in left_out
    assert [one.status for one in found if one.rung > 3] == ["agrees"] * 4


class Autocast(nn.Module):
    def __init__(self, dtype=torch.bfloat16, **options):
        super().__init__()
        self.net, self.dtype = normalised(**options)(), dtype

    def forward(self, x):
        with torch.autocast("cpu", self.dtype, enabled=self.dtype is not None):
            return self.net(x).float()


def test_a_model_that_computes_in_half_precision_is_judged_with_its_tolerances(module):
    module.automatic = Autocast
    given = {"inputs": [{"name": None, "kind": "float", "shape": [8, 3, 6, 6], "high": None}]}
    facts = answered("torch_models:automatic", **given)["dtypes"]
    assert facts["parameters"] == {}
    assert facts["layers"]["net.0"] == facts["layers"]["net.4"] == "bfloat16"
    assert facts["others"] == ["float32"]
    found, _ = differences(module, Autocast, partial(Autocast, None))  # the differences are rounding
    assert ladder.first_difference(found) is None
    assert ladder.first_difference(differences(module, partial(Autocast, None), Autocast)[0]).rung == 4
    found, _ = differences(module, Autocast, partial(Autocast, momentum=0.9))
    assert ladder.first_difference(found).rung == 6


def test_parameters_in_half_precision_are_named_with_their_dtype(module):
    module.halved = lambda: normalised()().to(torch.bfloat16)
    given = [{"name": None, "kind": "float", "shape": [8, 3, 6, 6], "high": None, "dtype": "bfloat16"}]
    for phase in ("train", "infer"):
        facts = answered("torch_models:halved", phase, inputs=given)["dtypes"]
        assert facts["parameters"]["0.weight"] == "bfloat16"
        assert set(facts["layers"].values()) == {"bfloat16"}
        assert facts["others"] == ["bfloat16"]


def test_values_of_another_arm_are_computed_with_and_compared(tmp_path, module, monkeypatch):
    values = [torch.arange(10.0).reshape(2, 5), torch.arange(10.0).reshape(2, 5) + 1]
    monkeypatch.setattr(module, "example_inputs", lambda: values[0], raising=False)
    found = inspected("torch_models:Regression")
    facts = {name: found[name] for name in ("inputs", "target", "examples")}
    saved_inputs, spec = str(tmp_path / "inputs.npz"), "torch_models:Regression"
    module_of = frameworks.load("torch")
    old = subjects.find(module_of, None, "paper", 3, "float32", model=described(spec, **facts))
    first = agreement.check(module_of, old, "infer", save=str(tmp_path / "w.npz"), save_inputs=saved_inputs)
    monkeypatch.setattr(module, "example_inputs", lambda: values[1], raising=False)
    second = compared(spec, weights=str(tmp_path / "w.npz"), values=saved_inputs, **facts)
    numpy.testing.assert_array_equal(first["logits"], second["logits"])
    assert second["inputs"] == {"input 1": 1}


def test_nothing_is_left_in_the_project():
    contract.nothing_is_left_in_the_project()


@pytest.mark.parametrize(
    ("mode", "arguments"),
    [("compile", {}), ("graphs", {}), ("max-autotune", {"mode": "max-autotune-no-cudagraphs"})],
)
def test_a_function_that_changes_its_inputs_is_compiled_without_cuda_graphs(mode, arguments, monkeypatch):
    support, asked = frameworks.load("torch"), []
    monkeypatch.setattr(support, "mode", mode)
    monkeypatch.setattr(torch, "compile", lambda function, **given: asked.append(given))
    support.compiled(len, replayed=False)
    support.compiled(len)
    assert asked == [arguments, support.MODES[mode]]


@pytest.mark.parametrize(
    ("mode", "variable"),
    [("compile", "TORCHDYNAMO_DISABLE"), ("max-autotune", "TORCH_COMPILE_DISABLE"), ("eager", None)],
)
def test_a_variable_that_disables_the_compiler_is_refused_only_in_modes_that_compile(monkeypatch, mode, variable):
    for name in ("TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE"):
        monkeypatch.setenv(name, "1" if variable in (name, None) else "0")
    support = frameworks.load("torch")
    monkeypatch.setattr(support, "mode", "eager")  # also undoes what a mode sets
    settings = support.resolve({**contract.SETTINGS, "mode": mode})
    if variable is None:
        support.configure(settings)
        return
    with pytest.raises(SetupError, match=f"{variable}=1 disables the compiler, which mode '{mode}' needs"):
        support.configure(settings)


def test_the_python_code_of_an_optimizer_is_not_busy():
    weight = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def run():
        optimizer.zero_grad()
        weight.sum().backward()
        optimizer.step()

    framework = frameworks.load("torch")
    operations = framework.profile(run)
    without = {name: one for name, one in operations.items() if not name.startswith("Optimizer")}
    assert len(operations) == len(without) + 2
    assert measurement.in_operations(framework, operations) == sum(seconds for seconds, _ in without.values())


def test_a_users_model_runs_with_the_flags_of_pytorch():
    flags = contract.flags_of_a_users_model("torch")
    assert flags["cudnn_tf32"] is True
    assert flags["cudnn_autotune"] is flags["deterministic"] is False


def test_the_optimizer_is_the_one_that_pytorch_chooses():
    arm = Arm("torch", "torch_models:image")
    [group] = model_training.optimizer_of(arm.net, arm.task).param_groups
    assert group["fused"] is None


def test_short_integers_become_long_ones():
    assert frameworks.load("torch").put(numpy.arange(3, dtype="int32")).dtype == torch.int64


def test_all_outputs_are_computed_and_compared():
    names, shapes = ["logits", "heads.1", "spectrum"], [(32, 5), (32, 5), (5, 32, 2)]
    contract.all_outputs_are_returned("torch", "torch_models:Several", names, shapes)


def test_what_a_model_returns_beside_arrays_is_compared(module, monkeypatch):
    class Labelled(module.Told):
        def forward(self, x):
            logits = self.dense(x)
            ids = logits.argmax(-1)
            return {"logits": logits, "ids": ids, "list": ids.tolist(), "label": "cat", "score": float(logits.max()),
                    "aux": object()}  # fmt: skip

    monkeypatch.setattr(module, "Labelled", Labelled, raising=False)
    assert [one["name"] for one in inspected("torch_models:Labelled")["outputs"]] == ["logits", "ids"]
    subject = subjects.find(
        frameworks.load("torch"), None, "paper", 3, "float32", model=described("torch_models:Labelled")
    )
    plain, flipped = (agreement.check(frameworks.load("torch"), subject, "infer", flip=flip) for flip in (False, True))
    assert json.loads(protocol.encode(plain))["outputs"] == json.loads(protocol.encode(flipped))["outputs"]
    found = json.loads(protocol.encode(plain))["outputs"]
    assert list(found) == ["ids", "list", "label", "score"] and plain["ignored"] == ["aux (object)"]
    assert found["label"] == {"shape": [], "numbers": "'cat'", "exact": True}
    assert found["ids"] == found["list"] and found["ids"]["exact"] and "exact" not in found["score"]


def test_whole_numbers_of_a_main_output_are_compared_twice(module, monkeypatch):
    class Ids(module.Told):
        def forward(self, x):
            return self.dense(x).argmax(-1) + 2**60

    monkeypatch.setattr(module, "Ids", Ids, raising=False)
    subject = subjects.find(frameworks.load("torch"), None, "paper", 3, "float32", model=described("torch_models:Ids"))
    numbers = agreement.check(frameworks.load("torch"), subject, "infer")
    assert numbers["outputs"][""]["exact"] and set(numbers["outputs"][""]["numbers"] - 2**60) <= set(range(5))


def test_a_model_is_told_whether_it_trains():
    contract.training_is_told("torch", "torch_models:Told", "is_training")


def test_a_complex_output_is_trained_with_both_parts(module, monkeypatch):
    class Complex(module.Told):
        def forward(self, x):
            return torch.complex(self.dense(x), 2 * self.dense(x))

    monkeypatch.setattr(module, "Complex", Complex, raising=False)
    assert inspected("torch_models:Complex")["target"]["shape"] == [32, 5, 2]
    losses = Arm("torch", "torch_models:Complex").losses(3)
    assert losses[0] > losses[2]


def test_a_training_of_the_users_own_is_not_replaced():
    reason = "it trains by its own training_step"
    assert inspected("torch_models:OwnTraining")["untrained"].startswith(reason)
    assert inspected("torch_models:Told")["untrained"] is None
    arm = Arm("torch", "torch_models:OwnTraining")
    arm.infer()
    for compute in (arm.losses, arm.gradients):
        with pytest.raises(SpecError, match=reason + ".*--phase infer, or write a recipe"):
            compute()


def test_an_output_without_numbers_and_one_that_is_not_finite_are_compared():
    array = numpy.array([1.0, numpy.inf, -numpy.inf, numpy.nan, -2.0])
    found = agreement.describe_output(array)
    assert found["shape"] == [5] and found["numbers"].tolist() == [1, 4, -4, 6, -2]
    assert agreement.describe_output(numpy.zeros((0, 4)))["shape"] == [0, 4]
    assert agreement.all_agree({"a": numpy.zeros(0)}, {"a": numpy.zeros(0)})
    assert not agreement.all_agree({"a": numpy.zeros(1)}, {"b": numpy.zeros(1)})


RECIPE = """
from torch_models import OwnTraining as network

def gradients(net, task):
    return lambda x, y: (net(x).sum(), {})

def training_step(net, task):
    return lambda x, y: net(x).sum()
"""


@pytest.mark.parametrize(
    ("text", "untrained"),
    [(RECIPE, False), (RECIPE.partition("def gradients")[0], True)],
    ids=["own", "derived"],
)
def test_a_recipe_with_its_own_training_is_trained(tmp_path, text, untrained):
    path = tmp_path / "recipes/own/torch.py"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    model = dict(described("recipes/own/torch.py"), recipe=str(path), folder=str(contract.PROJECT), task=None)
    reason = inspection.inspect(model)["untrained"]
    assert (reason is not None) is untrained
