"""The check of what a smoke run measured."""

import subprocess
import sys
from pathlib import Path

import pytest

from stele import environments

SCRIPT = Path(__file__).parents[2] / "scripts/measured.py"


@pytest.mark.parametrize(("names", "status"), [(("gru-here", "cnn-here"), 0), (("gru-here",), 1)])
def test_a_cell_that_could_be_measured_must_not_be_missing(tmp_path, monkeypatch, names, status):
    """Cells that the environment lacks may be missing; all other environments are left out."""
    (tmp_path / "here.toml").write_text(
        'label = "Here"\nframework = "scripted"\nimports = ["json"]\n[absent]\n"resnet50" = "It is too large"\n'
    )
    monkeypatch.setenv("STELE_ENVIRONMENTS", str(tmp_path))
    cases = "".join(f'<testcase name="test_inference[{name}]"/>' for name in names)
    (tmp_path / "run.xml").write_text(f"<testsuite>{cases}</testsuite>")
    tasks = ("cnn", "gru", "resnet50")
    others = ",".join(f"{task}-{name}" for task in tasks for name in environments.names() if name != "here")
    command = [sys.executable, str(SCRIPT), str(tmp_path / "run.xml"), "cnn:infer,gru:infer,resnet50:infer", others]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert f"{len(names)} cells measured of 2" in done.stdout
    assert ("test_inference[cnn-here]" in done.stderr) is bool(status)
