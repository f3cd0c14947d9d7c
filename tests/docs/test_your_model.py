"""Every line of docs/your-model.md is executed, from an empty folder and without a network.

Environments with the names of OLD and NEW answer in place of a framework; see ``scripted.py``. ``scripts/examples``
executes the same lines with the real releases.
"""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from tests.support.gates import NUMBERS, SECONDS
from tests.support.scripted_environments import INSPECTION

PAGE = (Path(__file__).parents[2] / "docs/your-model.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, flags=re.M | re.S)
LOCK = "torch==2.13.0\ntransformers==5.22.0\n"
ARMS = (
    "transformers==5.22.0 torch==2.13.0",
    "transformers==5.23.0 torch==2.13.0",
    "requirements.txt@HEAD^",
    "requirements.txt with transformers 5.23.0",
)


def blocks(language):
    return [text for name, text in BLOCKS if name == language]


@pytest.fixture
def shell(add_environment, tmp_path, monkeypatch):
    """shell(text, new={...}) -> (exit code, standard output) of lines that a user types, in an empty folder."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("pip is not installed in this environment. Install it with: python -m ensurepip")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, module in (("pip", "pip"), ("stele", "stele")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setenv("PIP_NO_INDEX", "1")  # Stele is installed already, so pip has nothing to download
    script = {"seconds": SECONDS, "numbers": NUMBERS, "inspection": INSPECTION}

    def shell(text, *, new=None):
        monkeypatch.chdir(tmp_path)  # where the environments are described
        for arm in ARMS:
            add_environment(arm, **{**script, **(new or {} if "5.23.0" in arm else {})})
        (tmp_path / "project").mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / "project")
        process = subprocess.run(["bash", "-c", text], stdout=subprocess.PIPE, text=True)
        return process.returncode, process.stdout

    return shell


def write_model():
    """Write net.py as the page says, into the folder of the user."""
    [text] = blocks("python")
    Path("net.py").write_text(text)


def git(*arguments):
    identity = ["-c", "user.name=user", "-c", "user.email=user@localhost", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], check=True)


def merge_a_pull_request():
    """Make a repository of the current folder whose last commit merges an upgrade of the lock file."""
    Path("requirements.txt").write_text(LOCK)
    git("init", "-q", "-b", "main")
    git("add", "requirements.txt", "net.py")
    git("commit", "-q", "-m", "Before the upgrade")
    git("switch", "-q", "-c", "upgrade")
    Path("requirements.txt").write_text(LOCK.replace("5.22.0", "5.23.0"))
    git("commit", "-q", "-a", "-m", "Upgrade transformers")
    git("switch", "-q", "main")
    git("merge", "-q", "--no-ff", "-m", "Merge the upgrade", "upgrade")


def test_the_page_needs_ten_lines_and_this_test_knows_all_of_them():
    assert {language for language, _ in BLOCKS} == {"console", "python", "yaml"}
    assert sum(bool(line.strip()) for _, text in BLOCKS for line in text.splitlines()) <= 10


@pytest.mark.slow
def test_the_lines_lead_from_an_empty_folder_to_a_verdict(shell):
    install, gate, resume = blocks("console")
    assert shell(install)[0] == 0
    assert list(Path.cwd().iterdir()) == []
    write_model()
    code, out = shell(gate)
    assert code == 0
    assert "PASS  transformers 5.22.0 → 5.23.0, torch 2.13.0\n" in out
    assert out.endswith("\n0\n")  # of echo $?
    code, out = shell(resume)
    assert code == 0
    assert "PASS" in out
    assert len(list(Path(".stele/gates").glob("*.jsonl"))) == 1  # it was resumed
    assert {path.name for path in Path.cwd().iterdir()} == {"net.py", ".stele"}


def test_the_file_of_the_model_builds_a_network_that_every_machine_can_measure(monkeypatch):
    class FromConfig:
        from_config = dict

    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(AutoModelForMaskedLM=FromConfig, BertConfig=dict))
    names = {}
    exec(blocks("python")[0], names)
    assert names["build"]() == {"hidden_size": 96, "num_hidden_layers": 2}


@pytest.mark.slow
def test_the_printed_exit_code_is_that_of_the_verdict(shell):
    shell("true")
    write_model()
    changed = {**NUMBERS, "logits": [1.0, 0.6, 0.25]}
    _, out = shell(blocks("console")[1], new={"numbers": changed})
    assert "BROKEN" in out
    assert out.endswith("\n1\n")


@pytest.mark.slow
def test_the_steps_of_the_workflow_gate_the_pull_request_of_a_shallow_clone(shell, tmp_path):
    [text] = blocks("yaml")
    checkout, step = yaml.safe_load(text)
    shell("true")
    write_model()
    merge_a_pull_request()
    depth = checkout["with"]["fetch-depth"]
    git("clone", "-q", "--depth", str(depth), Path.cwd().as_uri(), str(tmp_path / "clone"))
    code, out = shell(f"cd '{tmp_path / 'clone'}' && {step['run']}")
    assert code == 0
    assert "changed: transformers 5.22.0 to 5.23.0 in requirements.txt" in out
