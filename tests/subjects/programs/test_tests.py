"""Which commands are test suites, and what their worker is asked."""

from pathlib import Path

import pytest

from stele.subjects.programs import Tests as Suite
from stele.subjects.programs import tests as suites


@pytest.mark.parametrize(
    ("words", "label", "in_path"),
    [
        (("pytest", "tests", "-k", "a b"), "pytest tests -k 'a b'", False),
        (("py.test",), "pytest", False),
        (("python", "-m", "pytest", "tests"), "pytest tests", True),
        (("/usr/bin/python3", "-m", "pytest"), "pytest", True),
        (("python", "-B", "-m", "pytest", "tests"), "pytest tests", True),
        (("/opt/venv/bin/pytest", "tests"), "pytest tests", False),
    ],
)
def test_a_command_that_runs_pytest_is_a_suite(words, label, in_path):
    assert suites.is_pytest(words)
    suite = Suite(words, Path())
    assert (suite.label, suite.in_path) == (label, in_path)
    request = suite.as_request()
    assert request["in_path"] == in_path and "pytest" not in request["arguments"]


@pytest.mark.parametrize("words", [("python", "train.py"), ("python", "-m", "train"), ("tox",), ("pytest-watch",)])
def test_another_command_is_none(words):
    assert not suites.is_pytest(words)
