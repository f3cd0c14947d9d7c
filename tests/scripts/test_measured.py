"""The check of what a smoke run measured."""

import subprocess
import sys
from pathlib import Path

import pytest

from stele import environments

SCRIPT = Path(__file__).parents[2] / "scripts/measured.py"


@pytest.fixture
def check(tmp_path, monkeypatch):
    """check(names, wanted, *left_out) -> the finished script, if inference of these cells was measured.

    The environment lacks resnet50; all other environments are left out.
    """
    (tmp_path / "here.toml").write_text(
        'label = "Here"\nframework = "scripted"\nimports = ["json"]\n[absent]\n"resnet50" = "It is too large"\n'
    )
    monkeypatch.setenv("STELE_ENVIRONMENTS", str(tmp_path))

    def check(names, wanted, *left_out):
        cases = "".join(f'<testcase name="test_inference[{name}]"/>' for name in names)
        (tmp_path / "run.xml").write_text(f"<testsuite>{cases}</testsuite>")
        tasks = ("cnn", "gru", "resnet50")
        others = [f"{task}-{name}" for task in tasks for name in environments.names() if name != "here"]
        command = [sys.executable, str(SCRIPT), str(tmp_path / "run.xml"), wanted, ",".join([*others, *left_out])]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return check


@pytest.mark.parametrize(("names", "status"), [(("gru-here", "cnn-here"), 0), (("gru-here",), 1)])
def test_a_cell_that_could_be_measured_must_not_be_missing(check, names, status):
    done = check(names, "cnn:infer,gru:infer,resnet50:infer")
    assert done.returncode == status, done.stderr
    assert f"{len(names)} cells measured of 2" in done.stdout
    assert ("test_inference[cnn-here]" in done.stderr) is bool(status)


@pytest.mark.parametrize(("left_out", "missing"), [(["gru-here:train"], False), (["gru-here:infer"], True), ([], True)])
def test_one_phase_of_a_cell_can_be_left_out(check, left_out, missing):
    done = check(["gru-here"], "gru", *left_out)
    assert done.returncode == int(missing), done.stderr
    assert ("test_training[gru-here]" in done.stderr) is missing
