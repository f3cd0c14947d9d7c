"""Every name that a worker module or a performance test imports from Stele exists; no framework has to be installed.

mypy checks the host only.
"""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib.util import find_spec
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGES = {name: REPOSITORY / "src" / name for name in ("stele", "stele_suite", "stele_worker", "pytest_stele")}
PACKAGES["fixtures"] = REPOSITORY / "fixtures"
PACKAGES |= {name: REPOSITORY / name for name in ("checks", "studies")}
FOLDERS = ("src/stele_suite", "src/stele_worker", "perf_tests", "checks", "studies")
CHECKED = sorted(path for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*.py"))


def file_of(module):
    package, *rest = module.split(".")
    path = PACKAGES[package].joinpath(*rest)
    module = path.with_suffix(".py")
    return module if module.is_file() else path / "__init__.py"


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


def module_of(path, package):
    parts = [package, *path.relative_to(PACKAGES[package]).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path):
    """Yield what a module imports anywhere, also in functions, but not what only a type checker sees."""
    nodes = [ast.parse(path.read_text())]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif not (isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"):
            nodes.extend(ast.iter_child_nodes(node))


@pytest.mark.slow
def test_no_modules_import_each_other_in_a_circle():
    modules = {module_of(path, name): path for name, folder in PACKAGES.items() for path in folder.rglob("*.py")}
    graph = {}
    for module, path in modules.items():
        names = {name if name in modules else name.rpartition(".")[0] for name in imports_of(path)}
        graph[module] = names & set(modules) - {module}
    TopologicalSorter(graph).prepare()  # raises CycleError with the circle


# reported is what a module opens, lists or starts itself; what a library does while it is imported is its own affair
WATCHED_IMPORTS = """
import importlib, sys

def report(event, arguments):
    if event not in ("open", "os.listdir", "os.scandir", "subprocess.Popen"):
        return
    frame = sys._getframe(1)
    while frame and not frame.f_code.co_filename.startswith("<frozen importlib"):
        if frame.f_code.co_filename.startswith(folder):
            print(event, arguments[0], "in", frame.f_code.co_filename)
            return
        frame = frame.f_back

folder, *modules = sys.argv[1:]
sys.path.insert(0, folder)
sys.addaudithook(report)
for module in modules:
    importlib.import_module(module)
"""
TEMPLATE = "stele.explain.reproduce"  # it is copied beside the file that it reads


def read_on_import(folder, modules):
    command = [sys.executable, "-c", WATCHED_IMPORTS, str(folder), *modules]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout


@pytest.mark.slow
def test_the_import_of_a_module_reads_no_file():
    modules = [
        module_of(path, name) for name in ("stele", "pytest_stele") for path in sorted(PACKAGES[name].rglob("*.py"))
    ]
    assert read_on_import(REPOSITORY / "src", [name for name in modules if name != TEMPLATE]) == ""


def test_a_file_that_is_read_on_import_is_found(tmp_path):
    (tmp_path / "reader.py").write_text("from pathlib import Path\nPath('/proc/self/stat').read_text()\n")
    assert "/proc/self/stat" in read_on_import(tmp_path, ["reader"])


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
    return {name for name in names & OWN if not (path.parent / f"{name}.py").exists() and find_spec(name) is None}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_a_program_imports_by_its_short_name_only_what_is_beside_it(path):
    assert elsewhere(path) == STATED.get(str(path.relative_to(REPOSITORY)), set())


def test_a_name_that_is_missing_is_found(tmp_path):
    path = tmp_path / "recipe.py"
    path.write_text("from stele_suite.tasks import make, NOTHING\n")
    assert list(missing(path)) == ["stele_suite.tasks.NOTHING"]
