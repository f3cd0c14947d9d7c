"""A function of the user is found as a model is, and gets the inputs of the command line."""

import os
import sys

import numpy
import pytest

from stele_worker import clock
from stele_worker.models.errors import SpecError, UserCodeError
from stele_worker.programs import function


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a package, a module that cannot be imported, and a link to a file beside its neighbour."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    for name, text in {
        "package_of_user/__init__.py": "",
        "package_of_user/calls.py": "from . import neighbour\ndef f(x=1): return neighbour.g(x)\nnumber = 3\n",
        "package_of_user/neighbour.py": "class C:\n    @staticmethod\n    def m(): return 2\ndef g(x): return x + 1\n",
        "broken_of_user.py": "raise ValueError('no')\n",
        "elsewhere/linked_of_user.py": "import beside_of_user\ndef f(): return beside_of_user.VALUE\n",
        "elsewhere/beside_of_user.py": "VALUE = 5\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "link_of_user.py").symlink_to(tmp_path / "elsewhere/linked_of_user.py")
    yield str(tmp_path)
    for name in set(sys.modules) - before:
        if name.partition(".")[0].endswith("_of_user"):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("package_of_user/calls.py:f", 2),  # which imports its neighbour relatively
        ("package_of_user.calls:f", 2),
        ("package_of_user.neighbour:C.m", 2),
        ("link_of_user.py:f", 5),
    ],
)
def test_a_function_is_found_in_a_module_or_a_file(folder, text, result):
    assert function.find(text, folder)[1]() == result


def test_finding_a_function_does_not_change_where_its_libraries_look_for_weights(folder, monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    function.find("package_of_user.calls:f", folder)
    assert "HF_HUB_OFFLINE" not in os.environ


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("package_of_user/calls.py:ff", "has no 'ff'. Did you mean 'f'"),
        ("package_of_user.calls:number", "'package_of_user.calls:number' cannot be called: its type is int"),
        ("package_of_user.missing:f", "there is no module 'package_of_user.missing'"),
    ],
)
def test_what_is_no_function_is_refused(folder, text, message):
    with pytest.raises(SpecError) as refused:
        function.find(text, folder)
    assert message in str(refused.value)


def test_a_module_that_raises_is_the_users_error_with_its_line(folder):
    with pytest.raises(UserCodeError, match=r"broken_of_user.py:f raised ValueError: no\n.*line 1"):
        function.find("broken_of_user.py:f", folder)


def test_inputs_are_drawn_as_those_of_a_model():
    [mask, ids], named = function.arguments_of(
        "lib:f",
        print,
        None,
        [{"name": None, "kind": "mask", "shape": [2, 8]}, {"name": None, "kind": "int", "shape": [2, 8], "high": 5}],
    )
    assert mask.sum() == 14 and ids.max() < 5 and not named
    arguments, named = function.arguments_of("lib:f", print, None, [{"name": "x", "kind": "float", "shape": [3, 2]}])
    assert not arguments and named["x"].shape == (3, 2) and named["x"].dtype == numpy.float32


@pytest.mark.parametrize(("limit", "rounds"), [(None, 6), (3.0, 4), (0.0, 2)])
def test_rounds_end_with_the_limit_and_at_least_one_counts(monkeypatch, limit, rounds):
    """A call that takes twenty times as long in NEW would else take the whole budget."""
    now = [0.0]
    monkeypatch.setattr(clock, "perf_counter", lambda: now[0])
    program = function.Main(None, None, None)
    program.function, program.arguments, program.named = (lambda: now.__setitem__(0, now[0] + 0.5)), [], {}
    outcome = program.rounds(None, "f", steps=5, batch=2, limit=limit)
    assert outcome["steps"]["seconds"] == [0.5] * rounds
