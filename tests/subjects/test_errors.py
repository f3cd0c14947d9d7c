"""Errors that the code of a subject causes, and what the user can do about them."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from stele.environments import Environment
from stele.errors import SteleError
from stele.measuring.worker import WorkerError
from stele.subjects import errors


@pytest.mark.parametrize(
    ("error", "lock", "remedy"),
    [
        (
            "No module named 'flax'",
            Path("pylock.toml"),
            "or add its package to both arms, such as --with flax.",
        ),
        ("No module named 'flax'", None, "or install its package in jax==0.9.2."),
        ("No module named 'jax.experimental.stax'", None, None),  # a part that the release has dropped
        ("No module named 'net.part'; 'net' is not a package", None, None),
    ],
)
def test_a_module_that_is_missing_comes_with_the_remedy_of_its_environment(error, lock, remedy):
    environment = Environment(name="jax==0.9.2", label="", framework="jax", lock=lock)
    message = f"net.py:build raised ModuleNotFoundError: {error}"
    failure = WorkerError("", worker=SimpleNamespace(environment=environment), kind="UserCodeError", message=message)
    lines = str(errors.user_error(failure)).splitlines()
    assert lines[0] == message
    assert [line.partition("name, ")[2] for line in lines[1:]] == ([remedy] if remedy else [])


@pytest.mark.parametrize("error", [WorkerError("it crashed"), WorkerError("x", kind="ValueError"), SteleError("none")])
def test_another_failure_is_no_error_of_the_user(error):
    assert errors.user_error(error) is None


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("SpecError", errors.SubjectError), ("UserCodeError", errors.SubjectError), ("WeightsError", errors.UnfitWeights)],
)
def test_an_error_of_the_user_has_the_message_of_the_worker_alone(kind, expected):
    error = errors.user_error(WorkerError("Worker 'old' failed", kind=kind, message="net.py: line 3"))
    assert type(error) is expected and str(error) == "net.py: line 3"
