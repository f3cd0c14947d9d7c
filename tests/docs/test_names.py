"""A dotted name of Stele's own code in the documentation, such as `files.absolute`, exists in the code."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/results").glob("*.md")])
NAME = re.compile(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\(.*?\))?`")
VARIABLES = {"settings", "task"}  # of a message of the protocol, and of an example
FILES = re.compile(r".*\.(cfg|html|in|json|lock|md|npz|onnx|py|service|svg|timer|toml|txt|xml|yml)")


def dotted_names(text):
    """Return the dotted names in backticks, without names of files."""
    return [name for name in NAME.findall(text) if not FILES.fullmatch(name)]


@cache
def modules():
    """Return {name: paths} of packages by their names, and of modules by their names without a package.

    Modules that have the name of a framework are left out: `torch.compile` is a name of that framework.
    """
    frameworks = {path.stem for path in SOURCE.glob("*/recipes/*/*.py")}
    paths = {package.name: [package] for package in SOURCE.iterdir() if package.is_dir()}
    for path in SOURCE.rglob("*.py"):
        if path.stem not in frameworks | VARIABLES:
            paths.setdefault(path.stem, []).append(path)
    return paths


@cache
def names_of(path):
    """Return the names that a module defines or imports, and those of its classes."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
    return names


def exists(path, parts):
    """Return whether a package or a module has these parts."""
    if not parts:
        return path.exists()
    first, *rest = parts
    if path.is_dir():
        below = path / first
        if below.is_dir() or below.with_suffix(".py").is_file():
            return exists(below if below.is_dir() else below.with_suffix(".py"), rest)
        return exists(path / "__init__.py", parts)
    return path.is_file() and all(part in names_of(path) for part in parts)


def missing(text):
    """Return the dotted names of Stele's own code that do not exist."""
    split = {name: name.split(".") for name in dotted_names(text)}
    return [
        name
        for name, (first, *rest) in split.items()
        if first in modules() and not any(exists(path, rest) for path in modules()[first])
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_dotted_name_of_our_code_in_the_documentation_exists(page):
    assert missing(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("`stele.text.printable`, `files.absolute` and `stele.gate`", []),
        ("`Path.home()`, `torch.compile` and `gate.html`", []),
        ("`files.absolut`", ["files.absolut"]),
        ("`stele.txt.printable()`", ["stele.txt.printable"]),
        ("`clock.steps`", ["clock.steps"]),
    ],
)
def test_a_dotted_name_that_does_not_exist_is_named(text, names):
    assert missing(text) == names
