"""The tree of tests mirrors that of the host: tests/gate/test_judgement.py tests src/stele/gate/judgement.py.

A module may have more files of tests, such as tests/commands/test_gate_changed.py. The tests of a package are in a file
with its name: tests/data/test_data.py tests src/stele/data/__init__.py. Those of the plugin are in tests/plugin.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# modules without a file of tests, and the reason
EXCEPTIONS = {
    "pytest_stele/recipe_tests.py": "tests/plugin/test_collect.py runs them: they are tests",
    "stele/commands/fleet_nightly.py": "it needs a fleet: tests/docs/test_commands.py runs it",
    "stele/errors.py": "one exception",
    "stele/explain/document.py": "keys, which tests/commands/test_explain.py compares with the documentation",
    "stele/fleet/gates.py": "tests/fleet/test_ray.py compares its verdicts with those of a local gate",
    "stele/fleet/guard.py": "a process beside Ray: tests/fleet/test_ray.py",
    "stele/fleet/nights.py": "it needs a fleet: tests/docs/test_commands.py runs it",
    "stele/releases/asv_benchmarks/recipes.py": "asv runs it in environments of its own",
    "stele/report/sections/launches.py": "tests/report/test_charts.py reads its charts",
    "stele/report/sections/memory.py": "tests/report/test_build.py shows it",
    "stele/subjects/__init__.py": "names of other modules",
    "stele/subjects/base.py": "tests of each subject use it",
}
MOST = 12


def path_of_tests(module, sources):
    """Return the path of the tests of a module, in the folder of tests."""
    package, *folders, name = module.relative_to(sources).with_suffix("").parts
    if name == "__init__":
        name = (folders or [package])[-1]
    folders = ["plugin", *folders] if package == "pytest_stele" else folders
    return Path(*folders, f"test_{name.strip('_')}.py")


def modules(sources):
    """Return the modules of the host. A package that contains only a docstring needs no tests."""
    paths = [*(sources / "stele").rglob("*.py"), *(sources / "pytest_stele").rglob("*.py")]
    return [path for path in paths if path.name != "__init__.py" or len(ast.parse(path.read_text()).body) > 1]


def without_tests(root):
    sources = root / "src"
    return {
        str(path.relative_to(sources)): path_of_tests(path, sources)
        for path in modules(sources)
        if not (root / "tests" / path_of_tests(path, sources)).is_file()
    }


def test_each_module_has_a_file_of_tests_with_its_name():
    missing = {module: f"tests/{path}" for module, path in without_tests(ROOT).items() if module not in EXCEPTIONS}
    assert not missing, "Write these files. When a module has another name, move its tests."


def test_an_exception_is_a_module_without_tests():
    assert not EXCEPTIONS.keys() - without_tests(ROOT).keys(), "Remove these lines."
    assert len(EXCEPTIONS) <= MOST


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("stele/gate/judgement.py", "gate/test_judgement.py"),
        ("stele/report/sections/suite.py", "report/sections/test_suite.py"),
        ("stele/data/__init__.py", "data/test_data.py"),
        ("stele/__main__.py", "test_main.py"),
        ("pytest_stele/replay.py", "plugin/test_replay.py"),
    ],
)
def test_the_tests_of_a_module_are_in_a_folder_of_its_name(module, expected):
    assert path_of_tests(Path("src", module), Path("src")) == Path(expected)


def test_a_module_without_tests_is_found(tmp_path):
    for path in ("src/stele/gate/steps.py", "src/stele/gate/state.py", "tests/gate/test_steps.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    assert without_tests(tmp_path) == {"stele/gate/state.py": Path("gate/test_state.py")}
