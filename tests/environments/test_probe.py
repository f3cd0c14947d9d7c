"""Other interpreters, which are asked without the folders of the user."""

import os
import sys
from pathlib import Path

import pytest

from stele import environments
from stele.environments import Environment, builds, installer, packages


@pytest.fixture
def user_folder(tmp_path, monkeypatch):
    """A folder of the user with a package that raises an error at its import, as the current folder."""
    folder = tmp_path / "checkout"
    (folder / "json").mkdir(parents=True)
    (folder / "json/__init__.py").write_text("raise SystemError('the package of the user')")
    monkeypatch.chdir(folder)
    return folder


def test_a_package_in_the_users_folder_does_not_shadow_an_installed_one(user_folder):
    described = [Environment(name="one", label="One", framework="one", imports=("json",))]
    assert environments.pins.parse(sys.executable, described).framework == "one"
    one = Environment(name="one", label="One", framework="one", imports=("json",), python="==3.*")
    builds.check_imports(one, Path(sys.prefix))
    assert "pytest" in packages.listed(Path(sys.executable)).packages


def test_a_relative_path_of_uv_still_leads_into_the_users_folder(user_folder, monkeypatch):
    monkeypatch.setenv("UV_FIND_LINKS", "my wheels,https://example.org/wheels,/opt/wheels")
    monkeypatch.setenv("UV_CONSTRAINT", "a.txt b.txt")
    variables = installer.uv_variables()
    assert variables["UV_FIND_LINKS"] == f"{user_folder}/my wheels,https://example.org/wheels,/opt/wheels"
    assert variables["UV_CONSTRAINT"] == f"{user_folder}/a.txt {user_folder}/b.txt"


def test_the_interpreters_of_pyenv_replace_its_shims_on_the_search_path(tmp_path, monkeypatch):
    """A shim is a script that fails if no such interpreter is selected in pyenv."""
    shims = [str(tmp_path / "shims"), str(tmp_path / "plugins" / "pyenv-virtualenv" / "shims")]
    interpreters = [tmp_path / "versions" / release / "bin" for release in ("3.10.2", "3.9.1")]
    for folder in interpreters:
        folder.mkdir(parents=True)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", os.pathsep.join(["/first", *shims, "/usr/bin"]))
    folders = installer.search_path.__wrapped__().split(os.pathsep)
    assert folders[1:] == ["/first", *map(str, interpreters), "/usr/bin"]


def test_this_interpreter_is_found():
    versions = f"=={sys.version_info.major}.{sys.version_info.minor}.*"
    path = installer.find_interpreter(versions)
    assert path is not None and Path(path).exists()
