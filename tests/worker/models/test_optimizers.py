"""The optimizer that a user names with --optimizer: what is constructed, and what is never called."""

import sys
from types import SimpleNamespace

import pytest

from stele_worker.models import importing, optimizers
from stele_worker.models.errors import SpecError, UserCodeError

METHODS = ("step", "zero_grad")
LIBRARY = """
called = []


class Optimizer:
    def __init__(self, parameters, lr):
        called.append("Optimizer")
        self.parameters, self.lr = parameters, lr

    def step(self):
        pass

    def zero_grad(self):
        pass


def with_rate(parameters, learning_rate):
    return Optimizer(parameters, learning_rate)


def loss_with_rate(parameters, learning_rate):
    return "no optimizer"


def erase(parameters=None):
    called.append("erase")


class Network:
    def __init__(self, parameters):
        called.append("Network")
"""
OWN = """
from library import Optimizer


def make(parameters):
    return Optimizer(parameters, 0.5)


def fail(parameters):
    raise ZeroDivisionError("no rate")
"""


@pytest.fixture
def construct(tmp_path, monkeypatch):
    """construct("module:Class") -> the optimizer; ``library`` is installed, and ``own`` is in the user's project."""
    project, installed = tmp_path / "project", tmp_path / "site-packages"
    for folder, name, text in ((installed, "library", LIBRARY), (project, "own", OWN)):
        folder.mkdir()
        (folder / f"{name}.py").write_text(text)
    monkeypatch.setattr(sys, "path", [str(installed), *sys.path])
    monkeypatch.setattr(importing, "OFFLINE", ())
    importing.add_to_path(str(project))
    yield lambda text: optimizers.construct(
        SimpleNamespace(optimizer=text, model={"folder": str(project)}), METHODS, ["w"]
    )
    for name in ("library", "own"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("text", "rate"), [("library:Optimizer", 1e-3), ("library:with_rate", 1e-3), ("own:make", 0.5)]
)
def test_a_class_a_function_with_a_rate_and_the_users_own_function_are_constructed(construct, text, rate):
    optimizer = construct(text)
    assert (optimizer.parameters, optimizer.lr) == (["w"], rate)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("library:Optimiser", "library has no 'Optimiser'. Did you mean 'Optimizer'?"),
        ("nosuch:X", "The optimizer 'nosuch:X' cannot be imported"),
        (
            "os:system",
            "'os:system' is not an optimizer of this framework: it has no method step and zero_grad",
        ),
        ("os:_exit", "is not an optimizer"),
        ("library:erase", "is not an optimizer"),
        ("library:Network", "is not an optimizer"),
        ("library:called", "is not an optimizer"),
        ("library:loss_with_rate", "is not an optimizer"),
    ],
)
def test_what_is_no_optimizer_is_refused_before_it_is_called(construct, text, message):
    with pytest.raises(SpecError) as caught:
        construct(text)
    assert message in str(caught.value)
    assert not getattr(sys.modules.get("library"), "called", None)


def test_an_error_of_the_users_own_optimizer_has_the_users_traceback(construct):
    with pytest.raises(UserCodeError, match="own:fail raised ZeroDivisionError: no rate\n.*own.py"):
        construct("own:fail")
