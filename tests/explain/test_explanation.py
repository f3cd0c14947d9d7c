"""What differs between two releases beside the time of their operations."""

import dataclasses

import pytest

from stele.environments import ORACLE
from stele.environments.packages import Difference
from stele.errors import SteleError
from stele.explain import explanation
from stele.explain.launches import Launch
from stele.parity import defaults
from tests.support.gates import make_trial
from tests.support.runs import changed, make_run


def test_only_values_that_differ_are_listed_in_the_order_of_their_names():
    lines = explanation.changes("flags", {"b": 1, "a": 2, "gone": 3}, {"b": 2, "a": 2, "new": True})
    assert list(lines) == ["flags: b: 1 → 2", "flags: gone: 3 → none", "flags: new: none → True"]


def test_defaults_that_differ_are_listed(monkeypatch):
    tables = iter([{"seed": "0", "eps": 1e-5}, {"seed": "7", "eps": 1e-5}])
    monkeypatch.setattr(defaults, "ask", lambda environment: next(tables))
    assert list(explanation.changed_defaults(ORACLE, ORACLE)) == ["default: seed: 0 → 7"]


def test_defaults_of_two_frameworks_are_not_compared(monkeypatch):
    monkeypatch.setattr(defaults, "ask", lambda environment: pytest.fail("it was asked"))
    assert list(explanation.changed_defaults(ORACLE, dataclasses.replace(ORACLE, framework="torch"))) == []


def test_defaults_that_a_release_does_not_tell_are_unknown(monkeypatch):
    def fail(environment):
        raise SteleError("it has no table")

    monkeypatch.setattr(defaults, "ask", fail)
    assert list(explanation.changed_defaults(ORACLE, ORACLE)) == ["defaults: unknown, because it has no table"]


def test_packages_flags_and_versions_are_listed_before_defaults(monkeypatch):
    monkeypatch.setattr(explanation, "changed_defaults", lambda old, new: iter(["default: seed: 0 → 7"]))
    run = make_run()
    old = changed(run, framework={"flags": {"onednn": True}, "versions": {"torch": "1"}})
    new = changed(run, framework={"flags": {"onednn": False}, "versions": {"torch": "2"}})
    named = (Difference("torch", "1", "2"), Difference("numpy", "2.0", "2.0"))
    trial = dataclasses.replace(make_trial(), named=named, differences=(Difference("six", "1", None),))
    lines = list(explanation.what_differs(trial, Launch(old, new)))
    assert [line.partition(": ")[0] for line in lines] == ["package", "package", "flags", "versions", "default"]
    assert "flags: onednn: True → False" in lines and "versions: torch: 1 → 2" in lines
