"""The bundle that reproduces a difference without Stele."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy
import pytest

from stele import __main__ as entry_point
from stele.environments import packages
from stele.errors import SteleError
from stele.subjects.model.spec import Model
from stele_worker import profiles as worker_profiles


@pytest.fixture
def bundle_of_numpy(describe, tmp_path, monkeypatch):
    """Return the folder of a bundle that compares the framework numpy, on the task gru, with itself."""
    monkeypatch.setenv("PYTHONPATH", str(Path(worker_profiles.__file__).parents[1]))
    monkeypatch.setattr(packages, "of_environment", lambda environment: {"numpy": numpy.__version__})
    for name in ("old", "new"):
        describe(name, framework="numpy", command=[sys.executable, "-m", "stele_worker"])
    command = ["explain", "old", "new", "--task=gru", "--phase=infer", "--scale=study", "--times=1"]
    assert entry_point.main([*command, f"--bundle={tmp_path / 'slower.zip'}"]) == 0
    with zipfile.ZipFile(tmp_path / "slower.zip") as archive:
        archive.extractall(tmp_path)
    return tmp_path / "slower"


@pytest.mark.slow
def test_a_bundle_is_complete_and_reproduces_the_ratio_without_stele(bundle_of_numpy, monkeypatch):
    check_files(bundle_of_numpy)
    monkeypatch.delenv("PYTHONPATH")
    script = bundle_of_numpy / "reproduce.py"
    done = subprocess.run([sys.executable, script, "3"], capture_output=True, text=True, check=True)
    ratio = float(re.search(r"gru infer: NEW / OLD ([0-9.]+)", done.stdout).group(1))
    assert 0.5 < ratio < 2  # OLD and NEW are equal, and the machine may be busy
    listing = [str(bundle_of_numpy / "old/bin/python"), "-m", "pip", "list"]
    assert "stele" not in subprocess.run(listing, capture_output=True, text=True, check=True).stdout


def check_files(bundle_of_numpy):
    """Check that a bundle has an issue text, and only the code that it needs."""
    names = {path.relative_to(bundle_of_numpy).as_posix() for path in bundle_of_numpy.rglob("*") if path.is_file()}
    assert {"ISSUE.md", "setup.json", "old.txt", "new.txt"} <= names
    assert {"explanation.json", "launches.json", "machine.json"} <= names
    assert "code/stele_suite/recipes/gru/numpy.py" in names
    assert not any("torch" in name or "recipes/cnn" in name or "models" in name for name in names)
    text = (bundle_of_numpy / "ISSUE.md").read_text()
    assert re.match(r"# Inference of gru is [0-9.]+% (slower|faster) in new than in old\n", text)
    assert (bundle_of_numpy / "old.txt").read_text() == f"numpy=={numpy.__version__}\n"


@pytest.mark.parametrize("spec", ["package.net:build", "../net.py:build"])
def test_a_model_of_several_files_is_refused_before_the_launches(spec, tmp_path):
    with pytest.raises(SteleError, match="Put the model into one file"):
        Model(spec, tmp_path).reproduction()


def test_a_model_in_one_file_is_part_of_the_bundle(tmp_path):
    (tmp_path / "net.py").write_text("build = None\n")
    assert Model("net.py:build", tmp_path).reproduction() == {"net.py": "build = None\n"}
    assert Model("torchvision:resnet18", tmp_path).reproduction() == {}
