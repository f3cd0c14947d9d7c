"""Every name that a worker module or a performance test imports from Stele exists; no framework has to be installed.

mypy checks the host only.
"""

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PACKAGES = {name: REPOSITORY / "src" / name for name in ("stele", "stele_worker", "pytest_stele")}
PACKAGES["fixtures"] = REPOSITORY / "fixtures"
PACKAGES |= {name: REPOSITORY / name for name in ("checks", "studies")}
FOLDERS = ("src/stele_worker", "perf_tests", "checks", "studies")
CHECKED = sorted(path for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*.py"))


def file_of(module):
    package, *rest = module.split(".")
    path = PACKAGES[package].joinpath(*rest)
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
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            known = defined(file_of(node.module))
            yield from (f"{node.module}.{alias.name}" for alias in node.names if alias.name not in known)


@pytest.mark.parametrize("path", CHECKED, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_the_names_that_a_module_imports_exist(path):
    assert not list(missing(path))


PROGRAMS = [path for name in ("checks", "studies") for path in sorted((REPOSITORY / name).rglob("*.py"))]
# "public" and "loaders" have a file for each framework, with its name
OWN = {path.stem for path in PROGRAMS if path.parent.name not in ("public", "loaders")} - {
    "__init__",
    "__main__",
}
STATED = {"studies/peers/loop.py": {"answering"}}  # it names the folder of checks itself


def elsewhere(path):
    """Return the modules of other folders that a program imports by their short names; only its folder has them."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {
        name for name in names & OWN if not (path.parent / f"{name}.py").exists() and find_spec(name) is None
    }


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_a_program_imports_by_its_short_name_only_what_is_beside_it(path):
    assert elsewhere(path) == STATED.get(str(path.relative_to(REPOSITORY)), set())


def test_a_name_that_is_missing_is_found(tmp_path):
    path = tmp_path / "recipe.py"
    path.write_text("from stele_worker.tasks import make, NOTHING\n")
    assert list(missing(path)) == ["stele_worker.tasks.NOTHING"]
