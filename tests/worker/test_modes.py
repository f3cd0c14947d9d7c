"""The modes of execution in a worker."""

import pytest

from stele_worker.frameworks.base import Framework


class Abacus(Framework):
    MODES = ("eager", "compile")


@pytest.fixture
def abacus():
    return Abacus("abacus")


@pytest.mark.parametrize("settings", [{}, {"mode": None}, {"mode": "eager"}])
def test_the_first_mode_is_the_default(abacus, settings):
    assert abacus.resolve(dict(settings, seed=3)) == {"mode": "eager", "seed": 3, "tuned": True}


def test_a_known_mode_stays(abacus):
    assert abacus.resolve({"mode": "compile"})["mode"] == "compile"


def test_a_framework_without_modes_has_none():
    assert Framework("abacus").resolve({})["mode"] is None


def test_an_unknown_mode_is_refused_with_those_that_exist(abacus):
    with pytest.raises(ValueError, match="abacus has no mode 'static'. It has: eager, compile"):
        abacus.resolve({"mode": "static"})
    with pytest.raises(ValueError, match="abacus has no mode 'static'. It has: none"):
        Framework("abacus").resolve({"mode": "static"})


def test_a_framework_that_ignores_the_mode_is_an_error(abacus):
    abacus.mode = "compile"
    assert abacus.check_mode({"graphs": 1}, True) == {"graphs": 1}
    with pytest.raises(RuntimeError, match="the framework ignored mode 'compile' without an error"):
        abacus.check_mode({"graphs": 0}, False)


def test_a_framework_may_ignore_the_first_mode_only_in_a_model_of_the_user(abacus):
    abacus.mode = abacus.resolve({"tuned": False})["mode"]
    assert abacus.mode == "eager"
    assert abacus.check_mode({"graphs": 0}, False) == {"graphs": 0}
    for settings in ({"tuned": True}, {"tuned": False, "mode": "eager"}):
        abacus.resolve(settings)
        with pytest.raises(RuntimeError, match="ignored mode 'eager'"):
            abacus.check_mode({"graphs": 0}, False)
