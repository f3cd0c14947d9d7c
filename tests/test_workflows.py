"""The workflow of the nightly run keeps the earlier results, whatever fails."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

FILE = Path(__file__).parents[1] / ".github/workflows/nightly.yml"
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.org")


def steps():
    """Return the steps of the workflow by name."""
    listed = yaml.safe_load(FILE.read_text())["jobs"]["nightly"]["steps"]
    return {step["name"]: step for step in listed if "name" in step}


def git(folder, *arguments):
    subprocess.run(["git", "-C", str(folder), *IDENTITY, *arguments], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path):
    """A checkout of a repository that has no branch ``results``."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main", "origin")
    (tmp_path / "origin/file").write_text("")
    git(tmp_path / "origin", "add", ".")
    git(tmp_path / "origin", "commit", "--quiet", "-m", "Start")
    git(tmp_path, "clone", "--quiet", "origin", "checkout")
    return tmp_path / "checkout"


def add_results(origin):
    git(origin, "checkout", "--quiet", "--orphan", "results")
    (origin / "results").mkdir()
    (origin / "results/numbers.json").write_text("{}")
    git(origin, "add", ".")
    git(origin, "commit", "--quiet", "-m", "Measure")
    git(origin, "checkout", "--quiet", "main")


def fetch(checkout, **variables):
    """Run the step that fetches the results, and return its exit code."""
    command = ["bash", "-eo", "pipefail", "-c", steps()["Fetch the results"]["run"]]
    return subprocess.run(
        command, cwd=checkout, env={**os.environ, **variables}, capture_output=True
    ).returncode


def test_the_first_night_starts_without_results(checkout):
    assert fetch(checkout) == 0
    assert not (checkout / ".stele/asv/results").exists()


def test_later_nights_start_with_the_results_of_the_branch(checkout):
    add_results(checkout.parent / "origin")
    for _ in range(2):
        assert fetch(checkout) == 0
        assert (checkout / ".stele/asv/results/numbers.json").exists()


def test_results_that_cannot_be_fetched_are_an_error(checkout):
    """The earlier fetch has left a remote branch, which must not stand for the results of today."""
    add_results(checkout.parent / "origin")
    assert fetch(checkout) == 0
    (checkout.parent / "origin").rename(checkout.parent / "elsewhere")
    assert fetch(checkout) != 0


def test_results_that_are_not_extracted_completely_are_an_error(checkout, tmp_path):
    add_results(checkout.parent / "origin")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/tar").write_text("#!/bin/sh\nexit 2\n")
    (tmp_path / "bin/tar").chmod(0o755)
    assert fetch(checkout, PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}") != 0


def test_results_are_stored_only_if_the_earlier_ones_were_fetched():
    assert "steps.fetch.outcome == 'success'" in steps()["Store the results"]["if"]
    assert steps()["Fetch the results"]["id"] == "fetch"
    assert yaml.safe_load(FILE.read_text())["defaults"]["run"]["shell"] == "bash"  # pipefail
