"""The modes of execution in a worker."""

import pytest

from stele_worker import modes

KNOWN = ("eager", "compile")


def test_the_first_mode_is_the_default():
    assert modes.find("Abacus", KNOWN, {}) == "eager"
    assert modes.find("Abacus", KNOWN, {"mode": None}) == "eager"
    assert modes.find("Abacus", KNOWN, {"mode": "compile"}) == "compile"


def test_an_unknown_mode_is_refused_with_those_that_exist():
    with pytest.raises(ValueError, match="Abacus has no mode 'static'. It has: eager, compile"):
        modes.find("Abacus", KNOWN, {"mode": "static"})


def test_a_framework_that_ignores_the_mode_is_an_error():
    assert modes.check("compile", {"graphs": 1}, True) == {"graphs": 1}
    with pytest.raises(RuntimeError, match="the framework ignored mode 'compile' without an error"):
        modes.check("compile", {"graphs": 0}, False)
