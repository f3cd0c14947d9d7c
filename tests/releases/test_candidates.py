"""The candidates of a bisection."""

from types import SimpleNamespace

import pytest

from stele.environments import ORACLE
from stele.errors import SteleError
from stele.releases import candidates, frameworks, index


@pytest.fixture
def releases(monkeypatch):
    versions = ["1.0", "1.1", "1.2", "2.0"]
    monkeypatch.setattr(index, "releases", lambda package: [SimpleNamespace(version=version) for version in versions])


def test_the_releases_between_two_are_candidates_with_both_of_them(releases):
    assert candidates.select_requirements("toy", "1.1", "2.0") == ["toy==1.1", "toy==1.2", "toy==2.0"]


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ("1.1", "2.1", "'2.1'"),
        ("2.0", "1.0", "1.0 is not later than 2.0. Name the good release first."),
        ("1.0", "1.0", "1.0 is not later than 1.0."),
    ],
)
def test_releases_that_are_unknown_or_in_another_order_are_an_error(releases, good, bad, message):
    with pytest.raises(SteleError, match=message):
        candidates.select_requirements("toy", good, bad)


@pytest.fixture
def pins(monkeypatch):
    """pins(old, new) -> the candidates between two sets of versions, by step."""

    def pins(old, new):
        monkeypatch.setattr(frameworks, "environment_of", lambda framework: ORACLE)
        monkeypatch.setattr(frameworks, "package", lambda environment: "numpy")
        monkeypatch.setattr(candidates, "locked_packages", lambda _, text, __: old if text == "good" else new)
        monkeypatch.setattr(
            candidates, "load_pins", lambda environment, text: dict(pin.split("==") for pin in text.split())
        )
        return candidates.pins_of_framework("numpy", "good", "bad").candidates()

    return pins


def test_dependencies_change_one_by_one_before_the_framework(pins):
    steps = pins({"numpy": "1", "b": "1", "gone": "1"}, {"numpy": "2", "b": "2", "a": "1"})
    assert list(steps) == ["all as in GOOD", "a none to 1", "b 1 to 2", "gone 1 to none", "numpy 1 to 2"]
    assert steps["b 1 to 2"] == {"numpy": "1", "gone": "1", "a": "1", "b": "2"}
    assert steps["numpy 1 to 2"] == {"numpy": "2", "a": "1", "b": "2"}


def test_two_requirements_with_the_same_packages_have_no_candidates(pins):
    with pytest.raises(SteleError, match="good and bad resolve to the same packages"):
        pins({"numpy": "1"}, {"numpy": "1"})
