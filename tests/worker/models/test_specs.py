"""What a user may name, the object behind it, and the messages where there is none."""

import importlib
import os
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

from stele_worker import FOLDERS
from stele_worker.models import building, importing, inspection, libraries, sources, specs
from stele_worker.models.errors import SpecError, UserCodeError, describe_error, of_user
from stele_worker.models.specs import Spec, framework_of, parse
from stele_worker.protocol import InternalError


@pytest.fixture
def project(tmp_path, monkeypatch):
    """project(text, path) writes a module of a user's; the import state is put back after the test."""
    monkeypatch.setattr(sys, "path", sys.path[:])
    before = set(sys.modules)

    def write(text, path="mine.py"):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
        return tmp_path

    write.find = lambda spec: sources.find({"spec": spec, "folder": str(tmp_path)})
    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]


FAKE = """
    class Module:
        pass

    Module.__module__ = "torch.nn.modules.module"

    class Net(Module):
        width = 3

    def build():
        return Net()
"""


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("my.models:build", Spec("module", "my.models", "build")),
        ("models/net.py:Net", Spec("file", "models/net.py", "Net")),
        ("net.py:a.b", Spec("file", "net.py", "a.b")),
        ("torchvision:resnet18", Spec("torchvision", "torchvision", "resnet18")),
        ("timm:vit_tiny.augreg", Spec("timm", "timm", "vit_tiny.augreg")),
        ("keras:ResNet50", Spec("keras", "keras", "ResNet50")),
        ("hf:configs/bert", Spec("hf", "hf", "configs/bert")),
        ("hf-tiny:bert", Spec("hf-tiny", "hf-tiny", "bert")),
    ],
)
def test_a_spec_has_a_kind_a_place_and_a_name(text, spec):
    assert parse(text) == spec


@pytest.mark.parametrize("text", ["my.models", "net.py", ":build", "my.models:", "hf:", ""])
def test_a_text_that_is_no_spec_is_answered_with_the_forms(text):
    with pytest.raises(SpecError, match="does not name a model. Write package.module:attribute, path/file.py"):
        parse(text)


def test_a_factory_and_a_class_make_models(project):
    project(FAKE)
    for name in ("build", "Net"):
        net = building.build(project.find("mine:" + name), 0)
        assert (framework_of(net), net.width) == ("torch", 3)


def test_an_object_is_copied_each_time(project):
    project(FAKE + "\n    net = Net()\n")
    source = project.find("mine.py:net")
    first, second = building.build(source, 0), building.build(source, 0)
    assert first is not second and first is not source.value


def test_a_factory_that_returns_a_model_of_its_module_gives_copies(project):
    project(FAKE + "\n    net = Net()\n\n    def make():\n        return net\n")
    source = project.find("mine.py:make")
    first, second = building.build(source, 0), building.build(source, 0)
    assert first is not second and source.value() not in (first, second)


@pytest.mark.parametrize("decorator", ["functools.cache", "functools.lru_cache(maxsize=None)"])
def test_a_factory_that_returns_one_hidden_model_twice_is_refused(project, decorator):
    project(f"import functools\n{textwrap.dedent(FAKE)}\n\n@{decorator}\ndef make():\n    return Net()\n")
    source = project.find("mine.py:make")
    building.build(source, 0)
    with pytest.raises(SpecError, match="'mine.py:make' returns the same model in each call. Return a new one"):
        building.build(source, 0)


def test_a_file_in_a_package_imports_its_neighbours(project):
    project("WIDTH = 7", "package/sizes.py")
    project("", "package/__init__.py")
    project("from .sizes import WIDTH", "package/net.py")
    assert project.find("package/net.py:WIDTH").value == 7
    assert project.find("package.net:WIDTH").value == 7


@pytest.mark.parametrize("spec", ["mine.py:WIDTH", "mine:WIDTH", "nets/mine.py:WIDTH"])
def test_a_model_that_is_a_link_imports_the_neighbours_of_its_target(project, spec):
    project("WIDTH = 7", "sub/helper.py")
    folder = project("from helper import WIDTH", "sub/real.py")
    (folder / "nets").mkdir()
    (folder / "nets/mine.py").symlink_to("../sub/real.py")
    (folder / "mine.py").symlink_to("nets/mine.py")
    assert project.find(spec).value == 7


def test_the_neighbours_of_a_link_come_before_those_of_its_target(project):
    project("WIDTH = 7", "sub/helper.py")
    project("WIDTH = 8", "helper.py")
    folder = project("from helper import WIDTH", "sub/real.py")
    (folder / "mine.py").symlink_to("sub/real.py")
    assert project.find("mine.py:WIDTH").value == 8


def test_a_fifo_is_no_regular_file(project):
    os.mkfifo(project("", "other.py") / "mine.py")
    with pytest.raises(SpecError, match="mine.py is not a regular file"):
        project.find("mine.py:build")


def test_a_file_with_the_name_of_a_library_does_not_take_its_place(project):
    import json

    project("WIDTH = 7", "json.py")
    assert project.find("json.py:WIDTH").value == 7
    assert sys.modules["json"] is json


def test_nothing_is_written_into_the_users_folder(project, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    folder = project("import other\nWIDTH = other.WIDTH")
    project("WIDTH = 7", "other.py")
    assert project.find("mine:WIDTH").value == 7
    assert sorted(path.name for path in folder.iterdir()) == ["mine.py", "other.py"]


def test_the_bytecode_of_a_package_that_the_users_code_imports_is_written(project, monkeypatch, tmp_path):
    """Else each launch compiles it again, which takes most of the start of a model of transformers."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    packages = tmp_path / "site-packages"
    packages.mkdir()
    (packages / "installed_late.py").write_text("WIDTH = 7")
    monkeypatch.syspath_prepend(packages)
    project("import installed_late\nWIDTH = installed_late.WIDTH")
    assert project.find("mine:WIDTH").value == 7
    assert [path.name.split(".")[0] for path in packages.glob("__pycache__/*")] == ["installed_late"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("mine:biuld", "mine has no 'biuld'. Did you mean 'build'"),
        ("mine:Net.widht", "Net has no 'widht'. Did you mean 'width'"),
        ("mien:build", "there is no module 'mien' in "),
        ("mien.py:build", "there is no file .*mien.py"),
        ("package.mine:build", "there is no module 'package'"),
    ],
)
def test_a_name_that_is_not_there_is_answered_with_the_nearest(project, spec, message):
    project(FAKE)
    with pytest.raises(SpecError, match=message):
        project.find(spec)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "def build(width, depth=2): pass",
            "'mine:build' requires arguments: width. Name a function without",
        ),
        ("class build:\n    def __init__(self, width): pass", "requires arguments: width"),
        ("def build(): return {}", "returned {}, which is not a model of PyTorch, JAX"),
        ("build = 3", "is 3: neither a model nor a function or class"),
    ],
)
def test_what_makes_no_model_is_refused(project, text, message):
    project(text)
    with pytest.raises(SpecError, match=message):
        building.build(project.find("mine:build"), 0)


def test_what_a_factory_raises_comes_with_the_users_frames_alone(project):
    project("def build():\n    return deeper()\n\ndef deeper():\n    raise ValueError('no such width')")
    with pytest.raises(UserCodeError) as error:
        building.build(project.find("mine:build"), 0)
    lines = str(error.value).splitlines()
    assert lines[0] == "mine:build raised ValueError: no such width"
    assert [line.split(", ", 1)[1] for line in lines if "File" in line] == [
        "line 2, in build",
        "line 5, in deeper",
    ]
    assert "stele_worker" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "import nobody_has_this",
            "mine:build raised ModuleNotFoundError: No module named 'nobody_has_this'",
        ),
        ("def build(:", r"^mine:build raised SyntaxError: .*\n  File .*mine.py\", line 1\n    def build"),
        ("def build():\nreturn 1", r"^mine:build raised IndentationError: .*\n  File .*mine.py\", line 2\n"),
        ("1 / 0", "mine:build raised ZeroDivisionError"),
    ],
)
def test_a_module_that_cannot_be_imported_is_the_users_error(project, text, message):
    project(text)
    with pytest.raises(UserCodeError, match=message) as error:
        project.find("mine:build")
    assert "importlib" not in str(error.value)


EXITS = ["raise SystemExit(3)", "import sys; sys.exit()", "raise KeyboardInterrupt", "raise GeneratorExit"]


@pytest.mark.parametrize("text", EXITS)
def test_what_ends_a_program_is_the_users_error_with_its_line(project, text):
    project(f"# a comment\n{text}\ndef build():\n    pass")
    with pytest.raises(UserCodeError, match=r"mine:build raised \w+(: 3)?\n.*mine.py\", line 2"):
        project.find("mine:build")
    assert "mine" not in sys.modules
    project(f"def build():\n    {text}")
    with pytest.raises(UserCodeError, match="line 2, in build"):
        building.build(project.find("mine:build"), 0)


@pytest.mark.parametrize("text", EXITS)
def test_what_ends_a_program_in_a_step_is_the_users_error(project, text):
    model = {"spec": "mine:build", "folder": str(project(f"def step():\n    {text}"))}
    step = project.find("mine:step").value
    with pytest.raises(UserCodeError, match="line 2, in step"), of_user(model):
        step()
    with pytest.raises(KeyboardInterrupt), of_user(model):  # it is none of the user's
        raise KeyboardInterrupt


@pytest.mark.parametrize("code", ["nets", "{}['weight']", "[][0]", "os.no_such_function"])
def test_a_name_that_does_not_exist_in_steles_own_code_is_a_mistake_of_stele(code):
    with pytest.raises(InternalError, match="of_stele"), of_user({"spec": "net.py:build", "folder": "/"}):
        run_in(f"{FOLDERS[0]}/models/torch.py", code)


@pytest.mark.parametrize(
    ("path", "code", "kind"),
    [
        (f"{FOLDERS[0]}/models/torch.py", "int('no kernel')", ValueError),  # compiled code has no frames
        (f"{FOLDERS[0]}/models/torch.py", "len(1, 2)", TypeError),  # the user's function may have changed
        (f"{FOLDERS[0]}/models/torch.py", "None.shape", AttributeError),  # nothing was returned
        ("/site-packages/torch/nn/modules/module.py", "os.no_such_function", AttributeError),
        ("/site-packages/torch/nn/modules/module.py", "{}['weight']", KeyError),
    ],
)
def test_other_exceptions_are_no_mistake_of_stele(path, code, kind):
    with pytest.raises(kind), of_user({"spec": "net.py:build", "folder": "/project"}):
        run_in(path, code)


def test_an_exception_of_which_jax_has_removed_the_frames_is_no_mistake_of_stele():
    error = KeyError("weight")
    error.__cause__ = ValueError("the stack trace")
    with pytest.raises(KeyError), of_user({"spec": "net.py:build", "folder": "/project"}):
        run_in(f"{FOLDERS[0]}/models/jax.py", "raise error", error=error)


def run_in(path, code, **names):
    """Run code as if it stood in the file of this path."""
    text = f"def of_stele():\n    {code}\nof_stele()"
    exec(compile(text, path, "exec"), {"os": os, **names})


def test_a_name_that_the_locale_cannot_express_is_told(project):
    folder = os.fsencode(project("")) + b"/\xc3\xb6.py"
    name = folder.decode("ascii", "surrogateescape")  # as Python decodes it in the locale C
    with pytest.raises(ValueError, match="bad_cast") as error:
        exec(compile("def step():\n    raise ValueError('std::bad_cast')\nstep()", name, "exec"))
    message = describe_error(error.value, str(Path(name).parent))
    assert "cannot express" in message and "LC_ALL=C.UTF-8" in message


def test_a_torchvision_that_does_not_fit_torch_is_told_in_a_sentence(project):
    project("raise RuntimeError('operator torchvision::nms does not exist')", "torchvision/__init__.py")
    project("import torchvision")
    for spec in ("mine:build", "torchvision:resnet18"):
        sys.modules.pop("torchvision", None)
        sys.path.insert(0, str(project("import torchvision")))
        with pytest.raises(SpecError, match="each torchvision belongs to one torch, for example torchvision 0.28 to"):
            project.find(spec)


def test_a_library_that_is_not_installed_is_named(project, monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(SpecError, match="timm:resnet18 needs the package timm, which cannot be imported"):
        project.find("timm:resnet18")


def test_a_librarys_model_that_it_lacks_is_answered_with_the_nearest(project):
    project("def list_models(): return ['resnet18', 'vit']", "timm.py")
    sys.path.insert(0, str(project("")))
    with pytest.raises(SpecError, match="timm has no model 'resnt18'. Did you mean 'resnet18'"):
        libraries.factory("timm", "resnt18", "/")


def of(*modules):
    """An object whose classes are from these modules, the most derived first."""
    base = object
    for module in reversed(modules):
        base = type("Layer", (base,), {"__module__": module})
    return base()


@pytest.mark.parametrize(
    ("value", "framework"),
    [
        (of("mine", "torch.nn.modules.module"), "torch"),
        (of("mine", "flax.nnx.module"), "jax"),
        (of("mine", "flax.linen.module"), "jax"),
        (of("mine", "tensorflow.python.module.module"), "tensorflow"),
        (of("mine", "paddle.nn.layer.layers"), "paddle"),
        (of("keras.src.models.model", "torch.nn.modules.module"), "keras"),
        (of("keras.src.models.model", "tensorflow.python.trackable.base"), "keras"),
        (of("mine", "keras.src.engine.base_layer", "tensorflow.python.module.module"), "tensorflow"),
        (of("mine", "tf_keras.src.engine.base_layer", "tensorflow.python.module.module"), "tensorflow"),
        (of("tensorflow.python.keras.engine.training", "tensorflow.python.module.module"), "tensorflow"),
        ((len, max), "jax"),
        (of("torch_models"), None),
        ((1, 2), None),
        ({}, None),
        (len, None),
    ],
)
def test_a_models_framework_is_known_by_its_classes(value, framework):
    assert framework_of(value) == framework


@pytest.mark.parametrize(
    ("modules", "library"),
    [
        (("mine", "keras.src.models.model"), "keras"),
        (("tf_keras.src.engine.base_layer",), "tf_keras"),
        (("tensorflow.python.keras.engine.training",), "tensorflow.keras"),
        (("mine.keras", "tensorflow.python.module.module"), None),
    ],
)
def test_the_keras_library_of_a_model_is_known_by_its_classes(modules, library):
    assert specs.library(of(*modules)) == library


def test_a_callable_with_trainable_variables_is_tensorflows():
    class Net:
        trainable_variables = ()

        def __call__(self, x):
            return x

    assert framework_of(Net()) == "tensorflow"
    assert framework_of(Net) is None


def test_resolving_imports_no_framework_but_the_one_that_is_named(project, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    others = {"jax", "tensorflow", "keras", "paddle"}
    for name in others:
        monkeypatch.delitem(sys.modules, name, raising=False)  # another test may have imported it
    with pytest.raises((SpecError, ImportError)):
        inspection.resolve({"spec": "mine:build", "folder": str(project(FAKE))}, "torch")
    assert not others & set(sys.modules)


@pytest.mark.parametrize(("own", "seen"), [(None, "1"), ("0", "0")])
def test_hugging_face_is_offline_unless_the_user_says_otherwise(project, monkeypatch, own, seen):
    for name in importing.OFFLINE:
        monkeypatch.setenv(name, own or "")
        if own is None:
            monkeypatch.delenv(name)
    project("import os\nSEEN = os.environ['HF_HUB_OFFLINE'], os.environ['TRANSFORMERS_OFFLINE']")
    assert project.find("mine:SEEN").value == (seen, seen)
    monkeypatch.setenv("HF_HUB_OFFLINE", own or "")
    if own is None:
        monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(AutoConfig=None))
    monkeypatch.delitem(sys.modules, "stele_worker.models.huggingface", raising=False)
    importlib.import_module("stele_worker.models.huggingface")
    assert os.environ["HF_HUB_OFFLINE"] == seen


def test_inputs_that_cannot_be_inferred_are_typed_or_returned_by_a_function():
    message = inspection.hint("mine:build", ["left", "right"])
    assert "--input left=8x3x64x64 --input right=8x3x64x64" in message
    assert message.endswith(
        "Or write a function example_inputs() beside the model, which returns a batch: docs/your-model.md"
    )
