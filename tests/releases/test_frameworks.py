"""The environment of a release."""

import sys
from types import SimpleNamespace

import pytest

from stele.releases import frameworks


@pytest.mark.parametrize(
    "needs, minor, pinned",
    [
        (">=3.9", 11, []),
        (">=3.12", 11, ["python==3.12.*"]),
        (">=3.8,<3.11", 13, ["python==3.10.*"]),
        ("<3", 11, []),
        (">=3.5.*", 11, []),
    ],
)
def test_a_release_is_built_with_the_nearest_python_that_it_supports(monkeypatch, needs, minor, pinned):
    monkeypatch.setattr(sys, "version_info", SimpleNamespace(major=3, minor=minor))
    assert frameworks.interpreter_pin(needs) == pinned
    environment = frameworks.release_environment("jax-0.11.0", f"# Requires-Python: {needs}\njax==0.11.0\n")
    assert environment.python == (pinned[0].removeprefix("python") if pinned else f"==3.{minor}.*")
    assert list(environment.requirements) == ["jax==0.11.0"]
