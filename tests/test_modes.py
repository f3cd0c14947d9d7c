"""The modes of execution in a worker."""

from types import SimpleNamespace

import pytest

from stele_worker import modes

ABACUS = SimpleNamespace(MODES=("eager", "compile"))


@pytest.mark.parametrize("settings", [{}, {"mode": None}, {"mode": "eager"}])
def test_the_first_mode_is_the_default(settings):
    assert modes.resolve("abacus", ABACUS, dict(settings, seed=3)) == {
        "mode": "eager",
        "seed": 3,
        "tuned": True,
    }


def test_a_known_mode_stays():
    assert modes.resolve("abacus", ABACUS, {"mode": "compile"})["mode"] == "compile"


def test_a_framework_without_modes_has_none():
    assert modes.resolve("abacus", SimpleNamespace(), {})["mode"] is None


def test_an_unknown_mode_is_refused_with_those_that_exist():
    with pytest.raises(ValueError, match="abacus has no mode 'static'. It has: eager, compile"):
        modes.resolve("abacus", ABACUS, {"mode": "static"})
    with pytest.raises(ValueError, match="abacus has no mode 'static'. It has: none"):
        modes.resolve("abacus", SimpleNamespace(), {"mode": "static"})


def test_a_framework_that_ignores_the_mode_is_an_error():
    assert modes.check("compile", {"graphs": 1}, True) == {"graphs": 1}
    with pytest.raises(RuntimeError, match="the framework ignored mode 'compile' without an error"):
        modes.check("compile", {"graphs": 0}, False)
