"""``--model``, ``--input``, ``--optimizer`` and ``--pretrained``, as text: no user code runs here."""

import os

import pytest

from stele.errors import SteleError
from stele.subjects.base import OtherArm
from stele.subjects.model import inputs, spec


@pytest.mark.parametrize(
    ("text", "library"),
    [
        ("package.models:build", None),
        ("torchvision:resnet18", "torchvision"),
        ("hf-tiny:bert", "hf-tiny"),
        ("hf:./folder", "hf"),
    ],
)
def test_a_spec_names_a_library_or_the_users_code(tmp_path, text, library):
    (tmp_path / "folder").mkdir()
    model = spec.parse(text, tmp_path)
    assert (model.spec, model.library, model.folder) == (text, library, tmp_path)


def test_a_spec_may_name_a_file(tmp_path):
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "small.py").touch()
    assert spec.parse("nets/small.py:build", tmp_path).library is None
    with pytest.raises(SteleError, match=r"there is no file .*nets/smal.py. Did you mean small.py\?"):
        spec.parse("nets/smal.py:build", tmp_path)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/null")])
def test_a_file_of_a_model_or_of_weights_is_a_regular_file(tmp_path, make):
    make(tmp_path / "fm.py")
    with pytest.raises(SteleError, match=r"--model fm.py:m: .*/fm.py is not a regular file.$"):
        spec.parse("fm.py:m", tmp_path)
    make(tmp_path / "w.safetensors")
    with pytest.raises(SteleError, match="--pretrained w.safetensors is not a regular file"):
        spec.parse("hf:bert", tmp_path, pretrained="w.safetensors")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("resnet18", "names no model. Use one of: package.module:attribute"),
        (":x", "names no model"),
        ("x:", "names no model"),
        ("torch-vision:resnet18", "Did you mean torchvision:resnet18?"),
        ("a b:c", "neither a module nor a library"),
    ],
)
def test_a_spec_without_meaning_is_quoted(tmp_path, text, message):
    with pytest.raises(SteleError) as error:
        spec.parse(text, tmp_path)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "gru.onnx",
            "a recipe that runs the file with ONNX Runtime, and name the recipe: --model recipes/TASK/",
        ),
        ("GRU.ONNX", "--model GRU.ONNX names no code. Write a recipe"),
        ("there.onnx:main", "--model there.onnx:main names no code. Write a recipe"),
        ("net.pt", "Write a function that loads the file and returns the model"),
        ("w.safetensors", "name the function: --model net.py:build"),
        ("there.keras:model", "Write a function that loads the file"),
    ],
)
def test_a_file_of_a_model_is_no_code(tmp_path, text, message):
    for name in ("there.onnx", "there.keras"):
        (tmp_path / name).touch()
    with pytest.raises(SteleError) as error:
        spec.parse(text, tmp_path)
    assert message in str(error.value)


def test_a_module_may_have_the_name_of_a_format(tmp_path):
    assert spec.parse("export.onnx:build", tmp_path).spec == "export.onnx:build"


def test_paths_are_absolute_when_they_reach_the_worker(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.safetensors").touch()
    model = spec.parse(
        "a.b:c",
        tmp_path,
        inputs=inputs.parse("x=2x3"),
        optimizer="torch.optim:AdamW",
        pretrained="w.safetensors",
    )
    assert model.as_request(OtherArm(tmp_path / "old.npz")) == {
        "spec": "a.b:c",
        "folder": str(tmp_path),
        "inputs": [{"name": "x", "kind": "float", "shape": [2, 3], "high": None, "dtype": None}],
        "optimizer": "torch.optim:AdamW",
        "pretrained": str(tmp_path / "w.safetensors"),
        "weights_map": None,
        "weights": str(tmp_path / "old.npz"),
        "values": None,
        "checkpoint": None,
        "recipe": None,
        "task": None,
        "examples": None,
    }


@pytest.mark.parametrize("options", [{"optimizer": "AdamW"}, {"pretrained": "none.safetensors"}, {"pretrained": "."}])
def test_a_wrong_option_of_a_model_is_quoted(tmp_path, options):
    with pytest.raises(SteleError, match="--(optimizer|pretrained)"):
        spec.parse("a:b", tmp_path, **options)


NAMES = {"gate.weight": "router.weight"}


@pytest.mark.parametrize(
    ("name", "text"),
    [("m.json", '{"gate.weight": "router.weight"}'), ("m.toml", '"gate.weight" = "router.weight"')],
)
def test_names_of_renamed_parameters_are_read_and_sent_to_the_worker(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    model = spec.parse("a.b:c", tmp_path, weights_map=name)
    assert model.as_request()["weights_map"] == NAMES


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.json", None),
        ("m.json", "{"),
        ("m.json", '["gate.weight"]'),
        ("m.json", '{"gate.weight": 3}'),
        ("m.toml", "gate.weight = 3"),
        ("m.toml", "="),
        ("m.toml", "\udcff"),
    ],
)
def test_a_file_of_names_without_meaning_is_quoted(tmp_path, name, text):
    if text is not None:
        (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(SteleError, match=f"--weights-map {name}: .*Write a JSON or TOML file"):
        spec.parse("a.b:c", tmp_path, weights_map=name)
