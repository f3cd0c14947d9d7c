"""Which packages differ between two arms."""

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from stele.environments import packages
from stele.environments.environment import Environment
from stele.environments.packages import (
    Difference,
    differences,
    lines,
    of_interpreter,
    of_lock,
    venv_interpreter,
)
from stele.errors import SteleError


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def venv(tmp_path):
    """A virtual environment with one package, installed twice."""
    folder = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    second = tmp_path / "second"
    for place, version in ((site, "1.0"), (second, "2.0")):
        information = place / f"ML_dtypes-{version}.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: ML_dtypes\nVersion: {version}\n")
    (site / "second.pth").write_text(f"{second}\n")
    return folder


def test_a_lock_file_gives_versions_by_canonical_name(tmp_path):
    path = tmp_path / "0123.lock"
    url = "git+https://example.org/x@abc"
    path.write_text(f"ML_dtypes==0.4.1 \\\n    --hash=sha256:00\nnumpy==1.26.4\nx @ {url}\ntqdm>=4\n")
    assert of_lock(path) == {"ml-dtypes": "0.4.1", "numpy": "1.26.4", "x": url}


def test_a_lock_file_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(SteleError, match=r"absent.lock cannot be read"):
        of_lock(tmp_path / "absent.lock")


def test_an_interpreter_lists_what_it_imports(venv):
    assert of_interpreter(venv / "bin" / "python") == {"ml-dtypes": "1.0"}


def test_this_interpreter_lists_its_packages():
    assert of_interpreter(Path(sys.executable))["numpy"] == metadata.version("numpy")


def test_variables_and_files_of_the_user_do_not_change_the_list(venv, tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit('imported from the current folder')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert of_interpreter(Path(os.path.relpath(venv)) / "bin" / "python") == {"ml-dtypes": "1.0"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("echo 'No module named json' >&2; exit 1", "No module named json"),
        ("exit 3", "exit status 3"),
        ("true", "is not a working Python interpreter"),
        ("echo hello", "is not a working Python interpreter"),
        ("exec sleep 60", "timed out"),
    ],
)
def test_an_interpreter_that_fails_is_an_error(tmp_path, monkeypatch, text, message):
    monkeypatch.setattr(packages, "TIMEOUT", 2.0)
    with pytest.raises(SteleError, match=message):
        of_interpreter(script(tmp_path / "python", text))


def test_an_interpreter_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(SteleError, match="is not a working Python interpreter"):
        of_interpreter(tmp_path / "python")


def test_differences_are_sorted_and_leave_out_what_the_user_changes():
    old = {"torch": "2.4.1", "numpy": "1.26.4", "triton": "3.0.0", "tqdm": "4.67", "six": "1.17.0"}
    new = {"torch": "2.5.1", "numpy": "2.0.1", "ml-dtypes": "0.5.4", "tqdm": "4.67.0", "six": "1.17.0"}
    expected = [
        Difference("ml-dtypes", None, "0.5.4"),
        Difference("numpy", "1.26.4", "2.0.1"),
        Difference("triton", "3.0.0", None),
    ]
    assert differences(old, new, {"Torch"}) == expected
    assert lines(expected) == [
        "ml-dtypes (only in NEW) 0.5.4",
        "numpy 1.26.4 → 2.0.1",
        "triton (only in OLD) 3.0.0",
    ]


def test_builds_of_one_version_differ():
    assert differences({"torch": "2.5.1"}, {"torch": "2.5.1+cpu"}) == [Difference("torch", "2.5.1", "2.5.1+cpu")]


def test_the_interpreter_of_a_virtual_environment_is_found(venv, monkeypatch):
    assert venv_interpreter(venv) == venv / "bin" / "python"
    monkeypatch.chdir(venv.parent)
    assert venv_interpreter(Path("venv")) == venv / "bin" / "python"


def test_the_interpreter_of_a_conda_environment_is_found(tmp_path):
    (tmp_path / "conda-meta").mkdir()
    assert venv_interpreter(tmp_path) is None
    (tmp_path / "bin").mkdir()
    script(tmp_path / "bin" / "python", "true")
    assert venv_interpreter(tmp_path) == tmp_path / "bin" / "python"


def test_a_different_folder_has_no_interpreter(venv):
    (venv / "pyvenv.cfg").unlink()
    assert venv_interpreter(venv) is None
    assert venv_interpreter(venv / "absent") is None


def test_the_packages_of_a_worker_with_a_command_of_its_own_are_unknown():
    environment = Environment(name="own", label="Own", framework="torch", command=("python", "worker.py"))
    assert packages.of_environment(environment) == {}


def test_a_python_before_3_8_lists_the_same_packages():
    hidden = "import sys; sys.modules['importlib.metadata'] = None\n"
    old, new = (
        json.loads(subprocess.check_output([sys.executable, "-I", "-c", code + packages.LISTER]).splitlines()[-1])
        for code in (hidden, "")
    )
    assert old["packages"]
    assert sorted(map(str, old["packages"])) == sorted(map(str, new["packages"]))


def test_the_files_of_a_package_are_listed_without_what_python_and_installers_write(venv):
    (site,) = venv.glob("lib/python*/site-packages")
    rows = ("x.py,,", '"a,b.py",,', "__pycache__/x.pyc,,", "ML_dtypes-1.0.dist-info/RECORD,,", "../bin/x,,")
    (site / "ML_dtypes-1.0.dist-info" / "RECORD").write_text("\n".join(rows))
    found = packages.listed(venv / "bin" / "python").packages["ml-dtypes"]
    assert found.paths == tuple(f"{site}/{name}" for name in ("x.py", "a,b.py", "../bin/x")) and not found.sources


def test_of_a_package_without_a_list_of_files_the_modules_are_found(venv, tmp_path):
    (site,) = venv.glob("lib/python*/site-packages")
    project = tmp_path / "project"
    for place, name in ((site, "Legacy-1.0"), (project, "Mine")):
        (place / f"{name}.egg-info").mkdir(parents=True)
        (place / f"{name}.egg-info" / "PKG-INFO").write_text(f"Name: {name.partition('-')[0]}\nVersion: 1.0\n")
    (site / "Legacy-1.0.egg-info" / "top_level.txt").write_text("legacy\n_fast\n")
    (site / "legacy").mkdir()
    (site / "_fast.abi3.so").touch()
    (site / "easy-install.pth").write_text(f"{project}\n")  # as ``setup.py develop`` does
    found = packages.listed(venv / "bin" / "python").packages
    assert found["legacy"].sources == (site / "legacy", site / "_fast.abi3.so")
    assert found["mine"].sources == (project,)
