"""Defaults are kept by release, and two releases are compared fact by fact."""

import numpy
import pytest

from fakes import scripted_environment
from stele.errors import SteleError
from stele.parity import defaults
from stele.parity.defaults import Change
from stele.report import parity as parity_page
from stele_worker import defaults as asked


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where logs are written


def row(**script):
    return scripted_environment(
        {"table": {"epsilon": 1e-7, "GRU form": "reset before"}, "release": "2.3.1", **script}
    )


def test_a_table_is_asked_and_kept(tmp_path):
    assert defaults.kept(row(), tmp_path) is None
    table = defaults.record(row(), tmp_path)
    assert table == {"release of scripted": "2.3.1", "epsilon": 1e-7, "GRU form": "reset before"}
    assert defaults.kept(row(), tmp_path) == table


def test_a_framework_that_nobody_asked_says_where_its_module_would_be():
    with pytest.raises(
        SteleError, match=r"no tapes here\. Its module would be stele_worker/defaults/scripted\.py"
    ):
        defaults.ask(row(defaults="lack"))


def test_a_spoilt_file_is_named_with_what_to_do(tmp_path):
    defaults.file(row(), tmp_path).write_text("{")
    with pytest.raises(SteleError, match="is not JSON: .* Delete it, and ask again: stele defaults scripted"):
        defaults.kept(row(), tmp_path)


def test_changes_are_facts_that_differ_come_or_go():
    old = {"release": "2.3", "epsilon": 1e-7, "reset after": False, "gone": 1}
    new = {"release": "3.0", "epsilon": 1e-7, "reset after": True, "come": None, "new": 2}
    assert defaults.changes(old, new) == [
        Change("release", "2.3", "3.0"),
        Change("reset after", False, True),
        Change("gone", 1, None),
        Change("new", None, 2),
    ]
    assert defaults.changes(old, old) == []


def test_changes_are_lines_and_none_is_a_sentence():
    assert parity_page.changes("2.3", "3.15", [Change("reset after", False, True)]) == [
        "             2.3       3.15",
        "reset after  False  →  True",
    ]
    assert parity_page.changes("a", "b", []) == [
        "a and b do the same when nothing is passed, as far as is asked."
    ]


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


@pytest.mark.parametrize("array, fan_in, words", DRAWN)
def test_initial_weights_are_described_by_their_distribution(array, fan_in, words):
    assert asked.drawn(array, fan_in) == words


def test_a_framework_without_a_module_is_said_to_be_unasked():
    with pytest.raises(NotImplementedError, match="nobody has asked numpy yet"):
        asked.table("numpy")
