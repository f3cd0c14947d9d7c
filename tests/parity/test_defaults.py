"""Defaults are recorded for each release, and two releases are compared fact by fact."""

import numpy
import pytest

from stele import environments
from stele.environments import State
from stele.errors import SteleError
from stele.parity import defaults
from stele.parity.defaults import DefaultChange
from stele_worker import defaults as worker_defaults
from tests.support.scripted_environments import scripted_environment


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where logs are written


def environment(**script):
    return scripted_environment({"table": {"epsilon": 1e-7, "GRU form": "reset before"}, "release": "2.3.1", **script})


@pytest.fixture
def installed(monkeypatch):
    """The release is known, as that of an environment with a lock file."""
    monkeypatch.setattr(environments, "state", lambda environment: State("ready", "2.3.1"))


def test_defaults_are_recorded_and_loaded(installed, tmp_path):
    assert defaults.load(environment(), tmp_path) is None
    table, path = defaults.record(environment(), tmp_path)
    assert path == tmp_path / "scripted-2.3.1.json"
    assert table == {"release of scripted": "2.3.1", "epsilon": 1e-7, "GRU form": "reset before"}
    assert defaults.load(environment(), tmp_path) == table


@pytest.mark.parametrize("name", ["/opt/venv/bin/python", "scripted@/opt/venv/bin/python", "../scripted"])
def test_a_record_stays_in_its_folder_and_has_the_release_that_the_worker_reports(tmp_path, name):
    """The release of an interpreter is not known before its worker is asked."""
    (tmp_path / "records").mkdir()
    for release in ("2.3.1", "3.0.0"):
        script = {"table": {"epsilon": 1e-7}, "release": release}
        defaults.record(scripted_environment(script, name=name), tmp_path / "records")
    names = sorted(path.name for path in (tmp_path / "records").iterdir())
    assert [name.rpartition("-")[2] for name in names] == ["2.3.1.json", "3.0.0.json"]


def test_two_interpreters_with_different_releases_are_compared(tmp_path):
    """Neither has a known release, so a record of one must not stand for the other."""
    old, new = (
        scripted_environment({"table": {"epsilon": epsilon}, "release": release}, name=f"torch@/{release}/python")
        for release, epsilon in (("2.3.1", 1e-7), ("3.0.0", 1e-8))
    )
    tables = [defaults.load(side, tmp_path) or defaults.record(side, tmp_path)[0] for side in (old, new)]
    assert defaults.changes(*tables)[-1] == DefaultChange("epsilon", 1e-7, 1e-8)


def test_an_unsupported_framework_is_an_error_with_the_module_to_add():
    with pytest.raises(
        SteleError, match=r"no tapes here\. Add the module stele_worker/frameworks/scripted/defaults\.py"
    ):
        defaults.ask(environment(defaults="not_implemented"))


def test_a_damaged_file_is_an_error_with_the_command_that_records_it_again(installed, tmp_path):
    defaults.record_path(environment(), "2.3.1", tmp_path).write_text("{")
    with pytest.raises(SteleError, match="is damaged: .* Delete it, then record it again: stele defaults scripted"):
        defaults.load(environment(), tmp_path)


def test_changes_are_facts_that_differ_or_exist_in_one_release():
    old = {"release": "2.3", "epsilon": 1e-7, "reset after": False, "gone": 1}
    new = {"release": "3.0", "epsilon": 1e-7, "reset after": True, "come": None, "new": 2}
    assert defaults.changes(old, new) == [
        DefaultChange("release", "2.3", "3.0"),
        DefaultChange("reset after", False, True),
        DefaultChange("gone", 1, None),
        DefaultChange("new", None, 2),
    ]
    assert defaults.changes(old, old) == []


RANDOM = numpy.random.RandomState(0)
DRAWN = [
    (RANDOM.uniform(-1, 1, (500, 500)), 4, "uniform, deviation 1.2 / sqrt(fan in)"),
    (RANDOM.standard_normal((500, 500)), 1, "normal, deviation 1 / sqrt(fan in)"),
    (numpy.zeros((3, 3)), 3, "constant 0"),
    (numpy.linalg.qr(RANDOM.standard_normal((50, 50)))[0], 50, "orthogonal"),
    (
        numpy.clip(RANDOM.standard_normal((500, 500)), -2, 2),
        1,
        "truncated normal, deviation 0.96 / sqrt(fan in)",
    ),
]


@pytest.mark.parametrize("array, fan_in, description", DRAWN)
def test_initial_weights_are_described_by_their_distribution(array, fan_in, description):
    assert worker_defaults.distribution(array, fan_in) == description


def test_a_framework_without_a_module_is_an_error():
    with pytest.raises(NotImplementedError, match="no table of defaults is implemented for numpy yet"):
        worker_defaults.table("numpy")
