"""The workflow of the nightly run keeps the earlier results, whatever fails. Inputs never become part of a script."""

import configparser
import os
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILE = ROOT / ".github/workflows/nightly.yml"
ACTION = ROOT / "action.yml"
INPUTS = ("framework", "model", "old", "new", "changed", "options", "inconclusive", "reports")  # of gate.py
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
    return subprocess.run(command, cwd=checkout, env={**os.environ, **variables}, capture_output=True).returncode


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


def test_issues_are_updated_only_after_a_night_that_wrote_its_report():
    names = list(steps())
    assert names.index("Measure") < names.index("Open and close issues") < names.index("Fail if a metric changed")
    assert "hashFiles('nightly.json') != ''" in steps()["Open and close issues"]["if"]
    assert "rm -f nightly.json" in steps()["Measure"]["run"]  # of an earlier night: the runner keeps its files


# scripts


def scripts():
    """Yield the name and the script of every step of the workflows and of the action."""
    for path in (ACTION, *ROOT.glob(".github/workflows/*.yml")):
        content = yaml.safe_load(path.read_text())
        jobs = content.get("jobs", {"": content.get("runs")})
        for job in jobs.values():
            for step in job["steps"]:
                if "run" in step:
                    yield f"{path.name}: {step['name']}", step["run"]


@pytest.mark.parametrize("script", [pytest.param(text, id=name) for name, text in scripts()])
def test_no_script_has_an_expression(script):
    """GitHub writes the value of an expression into the script, so that a value can be a command."""
    assert "${{" not in script


def test_every_input_of_the_action_is_described_and_used():
    text, page = ACTION.read_text(), (ROOT / "docs/ci.md").read_text()
    inputs = yaml.safe_load(text)["inputs"]
    assert [name for name in inputs if f"inputs.{name} " not in text] == []
    assert [name for name in inputs if f"`{name}`" not in page.split("| input |")[1].split("\n\n")[0]] == []


def test_the_gate_of_the_action_gets_every_input_that_it_reads():
    [step] = [step for step in yaml.safe_load(ACTION.read_text())["runs"]["steps"] if step["name"] == "Gate"]
    read = (ROOT / ".github/scripts/gate.py").read_text()
    assert {name.removeprefix("INPUT_").lower() for name in step["env"]} == {
        name for name in INPUTS if f'"{name}"' in read
    }


def test_lint_checks_every_shell_script():
    tox = configparser.ConfigParser()
    tox.read(ROOT / "tox.ini")
    [line] = [line for line in tox["testenv:lint"]["commands"].splitlines() if line.startswith("shellcheck")]
    programs = {path for path in (ROOT / "scripts").iterdir() if path.is_file() and path.suffix != ".py"}
    scripts = {ROOT / ".ci/run", *programs, *(ROOT / "src").rglob("*.sh")}
    assert {ROOT / name for name in line.split()[1:]} == scripts


def test_the_gate_of_this_repository_runs_for_pull_requests_that_change_a_pin():
    workflow = yaml.safe_load((ROOT / ".github/workflows/gate.yml").read_text())
    assert workflow[True]["pull_request"]["paths"] == ["constraints.txt"]  # YAML reads "on" as True
    assert any(step["uses"] == "./" and "changed" in step["with"] for step in workflow["jobs"]["gate"]["steps"])
