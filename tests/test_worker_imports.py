"""Every name that a module of the worker imports from another one exists; no framework has to be installed."""

import ast
from pathlib import Path

import pytest

import stele_worker

ROOT = Path(stele_worker.__file__).parent


def file_of(module):
    path = ROOT.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def defined(path):
    """Return the names that a module binds, and for a package also its modules."""
    names = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name.split(".")[0] for alias in node.names)
    if path.name == "__init__.py":
        names.update(each.stem for each in path.parent.iterdir())
    return names


def missing(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stele_worker"):
            known = defined(file_of(node.module))
            yield from (f"{node.module}.{alias.name}" for alias in node.names if alias.name not in known)


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_names_that_a_module_imports_exist(path):
    assert not list(missing(path))


def test_a_name_that_is_missing_is_found(tmp_path):
    path = tmp_path / "recipe.py"
    path.write_text("from stele_worker.tasks import make, NOTHING\n")
    assert list(missing(path)) == ["stele_worker.tasks.NOTHING"]
