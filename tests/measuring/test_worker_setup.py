"""What no release is to blame for: an interpreter without a package, and a variable that disables a compiler."""

import sys
import venv

import pytest

from stele.environments import Environment
from stele.errors import SteleError
from stele.measuring.worker import WorkerError
from stele_worker import frameworks
from stele_worker.frameworks.base import Framework
from stele_worker.protocol import SetupError


def test_an_interpreter_without_numpy_is_named_and_its_framework_is_not_blamed(start, tmp_path):
    venv.create(tmp_path / "bare", symlinks=True, with_pip=False)
    python = tmp_path / "bare/bin/python"
    worker = start(Environment("bare", "Bare", "torch", command=(str(python), "-m", "stele_worker")))
    for _ in range(2):
        with pytest.raises(
            SteleError, match=rf"'bare' cannot be measured: .*{python} lacks the package numpy"
        ) as caught:
            worker.ask("hello")
        assert not isinstance(caught.value, WorkerError)


@pytest.fixture
def load(tmp_path, monkeypatch):
    """load(text) -> what ``frameworks.load`` does if a framework's module, or a release, has this text."""
    monkeypatch.setattr(frameworks, "PACKAGE", str(tmp_path / "stele_worker"))
    monkeypatch.setattr(frameworks, "__path__", [str(tmp_path / "stele_worker")])
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site-packages"), *sys.path])
    for folder in ("stele_worker/abacus_module", "site-packages/abacus"):
        (tmp_path / folder).mkdir(parents=True)

    def load(module, release):
        (tmp_path / "stele_worker/abacus_module/framework.py").write_text(module)
        (tmp_path / "site-packages/abacus/__init__.py").write_text(release)
        return frameworks.load("abacus_module")

    yield load
    for name in ("abacus", "stele_worker.frameworks.abacus_module", "stele_worker.frameworks.abacus_module.framework"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("module", "release", "kind"),
    [
        ("import sorobanic", "", SetupError),  # the interpreter lacks the framework
        ("import abacus.beads", "", ModuleNotFoundError),  # the release has dropped a part
        ("import abacus", "import sorobanic", ModuleNotFoundError),  # the release does not find what it needs
        ("import abacus", "raise ImportError('libabacus.so')", ImportError),
    ],
)
def test_a_missing_framework_is_told_from_a_release_that_does_not_import(load, module, release, kind):
    with pytest.raises(kind) as caught:
        load(module, release)
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("value", "refused"),
    [("1", True), ("True", True), ("on", True), ("0", False), ("", False), ("false", False)],
)
@pytest.mark.parametrize("name", ["JAX_DISABLE_JIT", "TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE"])
def test_a_variable_that_disables_the_compiler_is_named(monkeypatch, name, value, refused):
    monkeypatch.setenv(name, value)
    framework = Framework("abacus")
    framework.mode = "compiled"
    if not refused:
        framework.require_compiler([name])
        return
    with pytest.raises(SetupError, match=f"{name}={value} disables the compiler, which mode 'compiled' needs"):
        framework.require_compiler(["OTHER", name])


def test_a_model_of_the_user_runs_as_the_variable_says(monkeypatch):
    """Without a mode, the user's variables decide how a framework executes."""
    monkeypatch.setenv("JAX_DISABLE_JIT", "1")
    framework = Framework("abacus")
    framework.resolve({"tuned": False})
    framework.require_compiler(["JAX_DISABLE_JIT"])
