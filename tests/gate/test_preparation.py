"""What a gate does before its launches: build both arms, and find out what they are."""

import dataclasses

import pytest

from stele.environments import ORACLE, Environment, builds, installer, packages, relevance
from stele.environments.environment import Resolution
from stele.errors import SteleError
from stele.gate import preparation
from stele.gate.trial import Trial
from tests.support.gates import make_trial, printed


def test_a_new_release_that_installs_but_does_not_import_is_broken(gate, capsys, monkeypatch, tmp_path):
    def make(environment, **_):
        if environment.name == "new":
            raise builds.ImportFailed("'new' was installed, but its import failed")

    monkeypatch.setattr(preparation, "make", make)
    assert gate(f"--junit={tmp_path / 'report.xml'}") == 1
    assert "BROKEN  import: NEW: 'new' was installed" in printed(capsys)
    assert (tmp_path / "report.xml").exists()


def test_the_packages_that_the_named_one_needs_come_before_the_others(monkeypatch):
    old = {"transformers": "4.57.3", "tokenizers": "0.22", "anyio": "4.0", "torch": "2.12.0", "six": "1.17"}
    new = {"transformers": "5.0.0", "tokenizers": "0.23", "anyio": "4.1", "torch": "2.13.0", "six": "1.17"}
    asked = []

    def needed_by(names, environment):
        asked.append(set(names))
        return {"tokenizers"}

    monkeypatch.setattr(packages, "of_environment", lambda arm: old if arm.name.endswith("4.57.3") else new)
    monkeypatch.setattr(relevance, "needed_by", needed_by)
    arms = [
        Environment(name=f"transformers=={version}", label="", framework="torch") for version in ("4.57.3", "5.0.0")
    ]
    trial = preparation.with_packages(Trial(*arms, (), (), None, seed=0, budget=60.0), set())
    assert asked == [{"transformers"}]
    assert [package.name for package in trial.differences] == ["torch", "tokenizers", "anyio"]
    assert [package.name for package in trial.named] == ["transformers"]


def test_packages_that_are_unknown_in_one_arm_are_not_compared(monkeypatch):
    trial = make_trial()
    monkeypatch.setattr(packages, "of_environment", lambda environment: {})
    assert preparation.with_packages(trial, {"numpy"}) == trial


def test_what_an_arm_leaves_out_and_its_index_are_said():
    resolution = Resolution(messages=("pip is left out",), options=("--index-url", "https://index"))
    arm = dataclasses.replace(ORACLE, resolution=resolution)
    assert preparation.notes_about(arm) == ["pip is left out", "options of the index: --index-url, https://index"]
    assert preparation.notes_about(ORACLE) == []


def test_an_environment_that_cannot_be_built_is_an_error():
    missing = Environment("toy", "Toy", "toy", imports=("toy_of_nobody",))
    with pytest.raises(SteleError, match="'toy' is missing: toy_of_nobody is not installed. Run: pip install"):
        preparation.make(missing)


def test_without_a_network_ranges_stay_as_they_were_resolved(monkeypatch, tmp_path, capsys):
    lock = tmp_path / "pylock.toml"
    lock.touch()
    monkeypatch.setattr(installer, "is_offline", lambda: True)
    monkeypatch.setattr(builds, "resolve", lambda *_, **__: pytest.fail("it was resolved again"))
    preparation.resolve_again(dataclasses.replace(ORACLE, lock=lock))
    assert "numpy: UV_OFFLINE is set, so the packages are those of 20" in capsys.readouterr().err


IMPORT_FAILS = "'new' was installed, but its import failed"


@pytest.mark.parametrize(("failures", "statuses"), [(1, []), (2, ["BROKEN"])])
def test_new_is_broken_if_its_import_fails_twice(monkeypatch, failures, statuses):
    left = [builds.ImportFailed(IMPORT_FAILS)] * failures

    def make(environment, **_):
        if left:
            raise left.pop()

    monkeypatch.setattr(preparation, "make", make)
    monkeypatch.setattr(builds, "import_error_now", lambda environment: None)
    assert [verdict.status for verdict in preparation.make_new(ORACLE, ORACLE)] == statuses
