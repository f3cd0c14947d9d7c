"""OLD and NEW as users name them: what each gets from the model, the options and the environment."""

import dataclasses

import pytest

from stele import environments
from stele.commands import options
from stele.environments import arms
from stele.errors import SteleError
from stele.subjects import Tasks
from stele.subjects.model import spec
from tests.support.wheels import wheel


@pytest.fixture
def model(tmp_path):
    (tmp_path / "net.py").touch()
    return spec.parse("net.py:build", tmp_path)


@pytest.fixture
def no_keras_file(monkeypatch, tmp_path):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.delenv("KERAS_BACKEND", raising=False)


def loaded(text, model, *requirements):
    return arms.load(text, (model or Tasks()).needs, arms.Extras(requirements))


@pytest.mark.parametrize("backend", ["torch", "jax", "tensorflow"])
def test_keras_runs_on_the_backend_of_the_users_variable(monkeypatch, no_keras_file, model, backend):
    monkeypatch.setenv("KERAS_BACKEND", backend)
    arm = loaded("keras==3.14.1", model)
    package = {"tensorflow": "tensorflow-cpu"}.get(backend, backend)
    assert any(one.startswith(package) for one in arm.requirements)
    assert "KERAS_BACKEND" not in arm.variables  # the worker inherits that of the user


def test_a_backend_that_the_user_names_as_a_package_is_installed_once_and_alone(monkeypatch, no_keras_file, model):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    arm = loaded("keras==3.14.1", model, "torch==2.13.0")
    backends = [one for one in arm.requirements if arms.name_of(one).startswith(("torch", "tensorflow", "jax"))]
    assert backends == ["torch==2.13.0"]


def test_keras_runs_on_the_backend_of_the_users_file(no_keras_file, model, tmp_path):
    (tmp_path / "keras.json").write_text('{"backend": "jax"}')
    assert loaded("keras==3.14.1", model).variables["KERAS_BACKEND"] == "jax"


def test_without_a_choice_keras_runs_on_its_default(no_keras_file, model):
    assert loaded("keras==3.14.1", model).variables["KERAS_BACKEND"] == "tensorflow"


def test_an_environment_with_another_backend_than_the_users_is_refused(monkeypatch, no_keras_file, model):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    with pytest.raises(SteleError, match="keras-jax runs Keras on jax, but your backend of Keras is torch"):
        loaded("keras-jax", model)


@pytest.mark.parametrize("text", ["keras-jax@keras==3.14.1", "keras-tensorflow@keras==3.14.1 python==3.11"])
def test_a_pin_of_an_environment_with_another_backend_is_refused(monkeypatch, no_keras_file, model, text):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    with pytest.raises(SteleError, match="but your backend of Keras is torch"):
        loaded(text, model)
    assert loaded(text, None).variables["KERAS_BACKEND"] != "torch"


def test_an_interpreter_for_an_environment_with_another_backend_is_refused(monkeypatch, no_keras_file, model):
    monkeypatch.setattr(environments.pins.probe, "run", Answered)
    assert loaded("keras-jax@/opt/python", model).variables == {"KERAS_BACKEND": "jax"}
    with pytest.raises(SteleError, match="--with adds packages to environments that Stele builds"):
        loaded("keras-jax@/opt/python", model, "einops")
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    with pytest.raises(SteleError, match="keras-jax@/opt/python runs Keras on jax, but your backend of Keras"):
        loaded("keras-jax@/opt/python", model)


class Answered:
    """A process of an interpreter that has the framework."""

    stdout = "[true]"

    def __init__(self, *arguments, **options):
        pass

    def check_returncode(self):
        pass


@pytest.mark.parametrize(
    "text", ["torch@torch==2.13.0", "keras-tensorflow@keras==3.14.1", "paddle@paddlepaddle==3.3.1"]
)
def test_a_pin_of_an_environment_gets_what_the_model_and_the_options_add(no_keras_file, tmp_path, text):
    hf = spec.parse("hf-tiny:bert", tmp_path)
    arm = arms.load(text, hf.needs, arms.Extras(("einops<1",), python="3.11"))
    assert {"einops<1", "transformers", text.partition("@")[2], "numpy"} <= {*arm.requirements}
    assert (arm.name, arm.python, arm.on_amd) == (text, "==3.11.*", {})
    assert arm.variables == environments.load(text).variables
    assert environments.load(text).on_amd == arms.load(text, arms.TASKS, arms.Extras()).on_amd


def test_a_variable_of_a_description_gives_way_to_that_of_the_user(monkeypatch, model):
    described = dataclasses.replace(environments.load("torch"), variables={"OMP_WAIT_POLICY": "active"})
    assert arms.as_user_runs(described).variables == {"OMP_WAIT_POLICY": "active"}
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    assert arms.as_user_runs(described).variables == {}


def test_a_model_of_the_user_gets_no_tuning_for_its_processor(model):
    assert environments.load("paddle").on_amd
    assert loaded("paddle", model).on_amd == {}


@pytest.mark.parametrize("text", ["toy==1 layers==2", "kernels-1.5-py3-none-any.whl", "requirements.txt"])
def test_every_form_of_an_arm_gets_what_the_options_add(model, tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    wheel(tmp_path, "kernels", "1.5")
    (tmp_path / "requirements.txt").write_text("toy==1\n")
    arm = arms.load(text, model.needs, arms.Extras(("einops<1",), python="3.11"))
    assert "einops<1" in arm.requirements
    assert arm.python == "==3.11.*"


def test_the_index_of_a_project_is_that_of_both_arms(tmp_path, model):
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\nversion = "1"\ndependencies = ["toy<3"]\n'
        "[[tool.uv.index]]\nname = 'a'\nurl = 'https://example.org/simple'\n"
    )
    found = options.ModelOptions(with_project=tmp_path).of_arms()
    arm = arms.load("layers==1", model.needs, found)
    assert arm.resolution.options == ("--extra-index-url https://example.org/simple",) and "toy<3" in arm.requirements


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("onnxruntime-gpu==1.20.0", "onnxruntime"),
        ("paddlepaddle-gpu==3.0.0", "paddlepaddle"),
        ("tensorflow==2.18.0", "tensorflow-cpu"),
    ],
)
def test_an_arm_has_no_second_package_of_its_framework(text, other):
    arm = arms.load(text, arms.TASKS, arms.Extras())
    names = {arms.name_of(one) for one in arm.requirements}
    assert arms.name_of(text) in names and other not in names
