"""A name is a noun of what it holds, or a verb of what it does: ``match``, not ``found``; ``line``, not ``one``."""

import ast
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src"
BARE = {"asked", "found", "given", "held", "kept", "known", "made", "measured"}
BARE |= {"one", "own", "said", "seen", "taken", "told", "wanted"}
# the key ``own`` of the protocol is an argument of the worker and a field of its answer
EXCEPTIONS = {("stele_worker/agreement.py", "own"), ("stele/measuring/answers.py", "own")}
# the networks of other frameworks have the names of their libraries
LEFT_OUT = ("stele_suite/recipes", "stele_worker/frameworks")


def names_in(text):
    """Yield the names of the variables, arguments, functions, classes and attributes that a module sets."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler):
            yield node.name
        elif isinstance(node, ast.alias):
            yield node.asname


def bare_names(sources):
    """Return the names that are one of BARE, each with its module."""
    paths = [(path, path.relative_to(sources).as_posix()) for path in sorted(sources.rglob("*.py"))]
    return {
        (module, name)
        for path, module in paths
        if not module.startswith(LEFT_OUT)
        for name in BARE.intersection(names_in(path.read_text()))
    }


@pytest.mark.slow
def test_no_name_is_a_bare_participle():
    assert not bare_names(SOURCES) - EXCEPTIONS, "Name each after what it holds."


@pytest.mark.slow
def test_an_exception_is_still_needed():
    assert not EXCEPTIONS - bare_names(SOURCES), "Remove these lines."


@pytest.mark.parametrize(
    "text",
    [
        "found = 1",
        "def found(): pass",
        "def f(*, found=None): pass",
        "f = lambda found: 1",
        "[found for found in ()]",
        "x.found = 1",
        "class C:\n    found: int",
        "try:\n    f()\nexcept OSError as found:\n    pass",
        "import module as found",
        "if (found := f()): pass",
    ],
)
def test_a_bare_participle_is_noticed(tmp_path, text):
    (tmp_path / "module.py").write_text(text)
    assert bare_names(tmp_path) == {("module.py", "found")}


def test_the_name_of_another_module_may_be_used(tmp_path):
    (tmp_path / "module.py").write_text("from library import given\nlibrary.found(given, one=1)\n")
    assert not bare_names(tmp_path)
