"""Environments with other requirements."""

import re
import sys
from pathlib import Path

import pytest

from stele import environments
from stele.environments import Environment, arms, builds, pins
from stele.errors import SteleError
from stele.subjects import Tasks
from stele.subjects.model import spec

FOR_GPU = [name for name in environments.first_modes() if name.endswith("-cuda")]


@pytest.mark.parametrize(
    ("text", "framework"),
    [("paddlepaddle-gpu==3.3.1", "paddle"), ("onnxruntime-gpu==1.31.1", "onnxruntime")],
)
def test_a_package_for_a_gpu_names_its_framework_on_every_device(text, framework):
    described = [environments.load(name) for name in environments.first_modes() if name not in FOR_GPU]
    pinned = pins.parse(text, described)
    assert pinned.framework == framework and pinned.support.devices is None
    named = [pins.package_name(each) for each in pinned.requirements]
    assert text.partition("==")[0] in named and text.partition("-gpu")[0] not in named


def test_an_interpreter_may_have_a_build_for_a_gpu():
    paddle = environments.load("paddle")
    assert paddle.support.devices == ("cpu",)
    assert pins.with_interpreter(paddle, Path("/venv/bin/python")).support.devices is None


def test_a_pin_and_an_interpreter_do_not_mean_an_environment_for_a_gpu():
    every = [environments.load(name) for name in environments.names()]
    for text in ("jax==0.9.2", "tensorflow==2.20.0", "tensorflow-cpu==2.20.0", "onnxruntime==1.30.0"):
        assert pins.parse(text, every).support.devices != ("cuda",)
    assert pins.parse("jax-cuda@jax[cuda13]==0.9.2", every).support.devices == ("cuda",)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("jax==0.9.2", "jax"),
        ("jax==0.9.2 jaxlib==0.9.2", "jax"),
        ("tensorflow-cpu==2.20.0", "tensorflow"),
        ("tensorflow==2.20.0", "tensorflow"),
        ("tensorflow==1.14.0", "tensorflow1"),
        ("keras==3.14.1", "keras-tensorflow"),
        ("keras==3.14.1 jax==0.9.2", "keras-jax"),
        ("keras==2.2.4", "keras2-tensorflow"),
        ("keras-torch@keras==3.14.1", "keras-torch"),
        ("paddlepaddle==3.2.0", "paddle"),
        ("torch==2.12.0", "torch"),
    ],
)
def test_a_requirement_selects_an_environment(text, name):
    pinned, described = environments.load(text), environments.load(name)
    assert (pinned.name, pinned.framework, pinned.variables) == (
        text,
        described.framework,
        described.variables,
    )
    assert set(text.partition("@")[2].split() or text.split()) <= set(pinned.requirements)
    packages = [requirement.partition("==")[0] for requirement in pinned.requirements]
    assert len(packages) == len(set(packages))


def test_an_interpreter_can_be_pinned_with_a_package():
    assert environments.load("jax==0.4.30 python==3.10").python == "==3.10"


def test_a_requirement_of_an_unknown_package_names_it():
    with pytest.raises(SteleError, match=r"Unknown framework 'requests'\. List all with: stele env list"):
        environments.load("requests==2.0")


def test_a_requirement_with_a_typing_error_suggests_the_most_similar_framework():
    with pytest.raises(SteleError, match=r"Unknown framework 'jaxx'\. Did you mean 'jax'\? List all with: stele"):
        environments.load("jaxx==0.10")


def test_a_release_that_no_environment_supports_is_an_error():
    with pytest.raises(SteleError, match=r"No environment supports 'tensorflow-cpu==1\.14\.0'\. List all with:"):
        environments.load("tensorflow-cpu==1.14.0")


def test_an_invalid_requirement_is_an_error():
    with pytest.raises(SteleError, match="is not a requirement such as jax==0.9.2"):
        environments.load("jax==0.9.2 ==")


def test_a_path_that_is_not_a_working_interpreter_is_an_error(tmp_path):
    with pytest.raises(SteleError, match="no/python is not a working Python interpreter"):
        environments.load(f"{tmp_path}/no/python")


def test_an_interpreter_with_one_framework_selects_its_environment(tmp_path):
    described = [Environment(name="one", label="One", framework="one", imports=("json",))]
    described.append(Environment(name="two", label="Two", framework="two", imports=("no_such_module",)))
    environment = environments.pins.parse(sys.executable, described)
    assert (environment.framework, builds.command(environment)) == (
        "one",
        (sys.executable, "-m", "stele_worker"),
    )


def test_the_path_of_an_interpreter_becomes_absolute_and_its_link_stays(tmp_path, monkeypatch):
    """A worker starts in another folder; and the link is what makes an interpreter a virtual environment's."""
    (tmp_path / "v/bin").mkdir(parents=True)
    (tmp_path / "v/bin/python").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    described = [Environment(name="one", label="One", framework="one", imports=("json",))]
    for text in ("v/bin/python", "one@v/bin/python"):
        environment = environments.pins.parse(text, described)
        assert environment.name == text
        assert builds.command(environment)[0] == f"{tmp_path}/v/bin/python"


def test_an_interpreter_with_two_frameworks_is_an_error_that_lists_them(tmp_path):
    described = [Environment(name=name, label="", framework="", imports=("json",)) for name in ("one", "two")]
    with pytest.raises(SteleError, match=r"has several frameworks\. Choose one: one@\S+ or two@\S+"):
        environments.pins.parse(sys.executable, described)
    assert environments.pins.parse(f"two@{sys.executable}", described).name == f"two@{sys.executable}"


@pytest.mark.parametrize("with_model", [False, True])
@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("onnxruntime-gpu==1.20.1", {"onnxruntime"}),
        ("paddlepaddle-gpu==3.2.0", {"paddlepaddle"}),
        ("paddlepaddle==3.2.0", {"paddlepaddle-gpu"}),
        ("tensorflow==2.20.0", {"tensorflow-cpu"}),
        ("keras==3.14.1 tensorflow==2.20.0", {"tensorflow-cpu"}),
    ],
)
def test_only_one_build_of_a_framework_is_installed(text, others, with_model, tmp_path):
    (tmp_path / "net.py").write_text("")
    model = spec.parse("net.py:build", tmp_path, inputs=None) if with_model else None
    for arm in (
        arms.load(text, (model or Tasks()).needs, arms.Extras()),
        *(() if with_model else (environments.load(text),)),
    ):
        names = {re.split(r"\W*[=<>\[]", one)[0] for one in arm.requirements}
        assert {part.partition("==")[0] for part in text.split()} <= names and names.isdisjoint(others)
        assert ("gpu" not in text) or arm.support.devices is None


def test_a_build_for_a_gpu_that_is_added_with_an_option_replaces_the_other_one(tmp_path):
    (tmp_path / "net.py").write_text("")
    model = spec.parse("net.py:build", tmp_path, inputs=None)
    arm = arms.load("onnx==1.17.0", model.needs, arms.Extras(("onnxruntime-gpu==1.20.1",)))
    assert list(arm.requirements) == ["onnx==1.17.0", "onnxruntime-gpu==1.20.1", "numpy"]
    assert arm.support.devices is None
