"""Every ``stele`` command in a block of code of the documentation is executed, from an empty folder, without a network.

Environments whose workers return scripted numbers answer in place of the frameworks, and nothing is built, so a command
takes about a second. ``scripts/examples`` executes the commands of the tutorial and of the examples with real releases.
"""

import configparser
import contextlib
import dataclasses
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stele import __main__ as entry_point
from stele import environments, schema
from stele.commands import bisect, examples, options
from stele.environments import arms, builds
from stele.environments.state import State
from stele.fleet import cluster, joining, slurm
from stele.gate import baseline, behaviour, correctness
from stele.measuring import measure, processors, store
from stele.measuring.answers import ItemOutcome
from stele.measuring.conditions import Conditions
from stele.measuring.run import Origin
from stele.measuring.settings import Settings
from stele.parity import accuracy, devices, golden_numbers
from stele.parity.ladder import Finding, LadderResult
from stele.releases import candidates, frameworks, index, ledger
from stele.releases.index import Release
from stele_suite import tasks
from tests.support import gate_records
from tests.support.gates import NUMBERS, SECONDS, answer
from tests.support.pages import ROOT, commands
from tests.support.profiles import PROFILE
from tests.support.runs import changed
from tests.support.scripted_environments import INSPECTION
from tests.support.virtual_fleet import Here

SCRIPT = {
    "seconds": SECONDS,
    "numbers": NUMBERS,
    "inspection": INSPECTION,
    "profile": PROFILE,
    "accuracies": [0.60, 0.61, 0.62],
    "accuracy": 0.3,
    "table": {"seed": "0"},
    "release": "1.0",
}
RELEASES = {
    "torch": ("2.12.0", "2.13.0"),
    "jax": ("0.9.2", "0.10.0", "0.10.2"),
    "keras": ("3.14.1", "3.15.1"),
    "onnxruntime": ("1.20.0", "1.21.0"),
}
PIN = re.compile(r"([\w-]+)==([\w.]+)")
SLOW = ("0.10.2", "3.15.1")  # releases whose steps take a tenth longer
REAL = {"data": None, "data_origin": Origin(origin="official", fingerprint="0")}
OWN_RECIPE = (ROOT / "docs/your-recipe.md").read_text(encoding="utf-8")
QUIET = schema.convert(gate_records.CONDITIONS, Conditions)
SHOWN = [one for one in commands("stele") if one.values[1]]


@pytest.fixture
def shell(add_environment, monkeypatch, tmp_path, run):
    """shell(line) -> exit code of a stele command that a user types in a repository with a model and measured Runs."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    add_environment("fake", **SCRIPT)
    use_several_devices("fake")
    monkeypatch.setattr(entry_point, "parser", entry_point.parser.__wrapped__)  # which knows the tasks of this test
    monkeypatch.setattr(processors, "count", lambda: 2)  # a page may show two devices
    monkeypatch.setattr(Settings, "check_machine", lambda self: None)  # or a GPU
    for name in RELEASES:
        add_environment(name, **SCRIPT)
        path = environments.folders()[1] / f"{name}.toml"
        path.write_text(path.read_text().replace('"scripted"', f'"{name}"'))  # the frameworks of a task have recipes
    for framework, versions in RELEASES.items():
        follow(framework, versions)
    answer_in_place_of_frameworks(monkeypatch, run)
    build_nothing(monkeypatch)
    have_a_fleet_here(monkeypatch)
    monkeypatch.setattr(tasks, "NAMES", ("cnn", "gru", "cifar-fast"))
    monkeypatch.setattr(frameworks, "ENVIRONMENTS", {name: name for name in RELEASES})
    monkeypatch.setattr(golden_numbers, "FOLDER", tmp_path)
    monkeypatch.setattr(accuracy, "FILE", tmp_path / "accuracy.json")
    write_project(tmp_path, run)

    def shell(line):
        if "--resume" in line:
            shell(line.replace(" --resume", ""))
        if line.startswith("values"):
            shell("gate jax==0.9.2 jax==0.10.2 --only-outcomes -- pytest tests")
        if line == "fleet status":
            shell("fleet run --framework fake --task cnn")
        return entry_point.main(shlex.split(line))

    return shell


def use_several_devices(name):
    path = environments.folders()[1] / f"{name}.toml"
    path.write_text('parallel = "ranks"\n' + path.read_text())
    environments.described.cache_clear()


def follow(framework, versions):
    """Write the releases of a framework into the ledger."""
    path = environments.folders()[1] / f"{framework}.toml"
    requirements = f'[requirements]\n"{framework}" = "the framework"\n'
    path.write_text(path.read_text() + requirements)
    use_several_devices(framework)
    listed = [release(framework, version) for version in versions]
    ledger.add(framework, frameworks.environment_of(framework), listed)


def release(name, version):
    versions = RELEASES.get(name, ())
    day = 1 + versions.index(version) if version in versions else 1
    return Release(name, version, f"2026-01-0{day}T00:00:00+00:00")


def answer_in_place_of_frameworks(monkeypatch, run):
    def load_arm(text, *_, **__):
        return dataclasses.replace(environments.load("fake"), name=text)

    def measure_arms(sides, *_):
        factors = {arm: 1.1 if environment.name.endswith(SLOW) else 1.0 for arm, environment in sides.items()}
        return {arm: measured(run, factor) for arm, factor in factors.items()}

    agrees = LadderResult([Finding(1, "agrees")], {}, "2026-11-22")
    monkeypatch.setattr(arms, "load", load_arm)
    timing = {"seconds": 0.01, "calls": 1, "rounds": 5}
    did = ItemOutcome(status="passed", timing=timing)
    items = {"items": {"test_a.py::test_a": did}, "whole": True, "not_collected": [], "failure": None, "versions": {}}
    monkeypatch.setattr(behaviour, "launch", lambda *_, **__: {**items, "conditions": QUIET, "took": 1.0})
    answer(monkeypatch, measure_arms)
    monkeypatch.setattr(correctness.examination, "run_ladder", lambda *_, **__: agrees)
    monkeypatch.setattr(devices, "run_ladder", lambda *_, **__: agrees)
    monkeypatch.setattr(measure, "inputs", lambda task: (REAL, None))


def measured(run, factor):
    return changed(
        run,
        blocks={"seconds": (0.01, 0.011) * 4, "returned": (0.001, 0.0011) * 4},
        options={"target": 0.1},
        steps={"seconds": tuple(factor * one for one in run.steps.seconds)},
        memory={"device": 2**20},
        learning={"accuracy": 0.2},
        profile=PROFILE,
        epochs={
            "accuracies": [0.2] * len(run.steps.seconds),
            "evaluation_seconds": [1.0] * len(run.steps.seconds),
            "compile_seconds": 0.0,
            "data_seconds": 0.1,
            "elapsed": 100.0,
        },
    )


def build_nothing(monkeypatch):
    monkeypatch.setattr(environments, "state", lambda environment: State("ready", None))
    monkeypatch.setattr(builds, "resolved_like", lambda new, old: new)
    for module, name in (
        (builds, "make"),
        (builds, "lock"),
        (builds, "require_interpreter"),
        (bisect, "make"),
    ):
        monkeypatch.setattr(module, name, lambda *_, **__: None)
    command = builds.command
    monkeypatch.setattr(builds, "command", lambda one: one.command or command(one))
    listed = {name: [release(name, one) for one in versions] for name, versions in RELEASES.items()}
    monkeypatch.setattr(candidates, "locked_packages", lambda _, text, __: dict(PIN.findall(text)))
    monkeypatch.setattr(index, "releases", lambda name, **_: listed.get(name, [release(name, "1.0")]))


def have_a_fleet_here(monkeypatch):
    @contextlib.contextmanager
    def connected(address, function, **_):
        yield Here(function)

    @contextlib.contextmanager
    def submitted(folder, function, partition):
        yield Here(function)

    monkeypatch.setattr(cluster, "connected", connected)
    monkeypatch.setattr(slurm, "submitted", submitted)
    monkeypatch.setattr(joining, "start", lambda *_: None)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0")


def write_project(folder, run):
    """Write the files that the pages name, into a repository with two commits."""
    for name in ("net.py", "package/models.py"):
        make_folder((folder / name).parent)
        (folder / name).write_text("build = None\n")
    (folder / "filters.py").write_text("smooth = None\n")
    for text in re.findall(r"^```python\n(.*?)^```", OWN_RECIPE, flags=re.M | re.S):
        path = folder / text.partition("\n")[0].removeprefix("# ")
        make_folder(path.parent)
        path.write_text(text)
    for name in (
        "docs/results/gates/jax-0.9.2-0.10.2.json",
        "baselines/ladder.json",
        "docs/results/time-to-accuracy.md",
    ):
        make_folder((folder / name).parent)
        shutil.copy(ROOT / name, folder / name)
    pins = folder / "requirements.txt"
    for version in ("5.22.0", "5.23.0"):
        pins.write_text(f"transformers=={version}\n")
        git("init", "-q", "-b", "main")
        git("add", "requirements.txt")
        git("commit", "-q", "-m", version)
    git("fetch", "-q", ".", "main")
    store.save(run, folder / ".stele/runs")
    baseline.save([run] * 12, Path("baselines"))
    gate_records.gate(make_folder(folder / ".stele/gates") / "20260101-000000-a.jsonl")


def make_folder(path):
    path.mkdir(parents=True, exist_ok=True)
    return path


def git(*arguments):
    identity = ["-c", "user.name=user", "-c", "user.email=user@localhost", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("line, _", SHOWN)
def test_every_command_that_is_shown_works(shell, line, _):
    worse = line.startswith(("gate", "bisect", "nightly", "fleet gate", "fleet nightly"))  # NEW may be worse: see SLOW
    assert shell(line) in ((0, 1) if worse else (0,))


@pytest.mark.parametrize("arguments, block", commands("stele"))
def test_every_command_that_is_shown_is_accepted(arguments, block, capsys):
    """A sentence may name an option without its value, such as `stele nightly --json`; a block may not."""
    words = shlex.split(arguments)
    if not block and " ".join(words) in dict(examples.parsers(entry_point.parser())):
        return
    try:
        entry_point.parser().parse_args(options.split_program(words)[0])
    except SystemExit as error:
        missing = r"arguments are required|needs a value"
        assert error.code == 0 or (not block and re.search(missing, capsys.readouterr().err))


@pytest.fixture(scope="module")
def options_of_pytest():
    """The options that pytest has in this repository."""
    done = subprocess.run([sys.executable, "-m", "pytest", "--help"], cwd=ROOT, capture_output=True, text=True)
    return set(re.findall(r"--[a-z][\w-]*", done.stdout))


@pytest.mark.slow
@pytest.mark.parametrize("arguments, block", commands("pytest"))
def test_every_option_of_pytest_that_is_shown_exists(arguments, block, options_of_pytest):
    typed = {word.partition("=")[0] for word in shlex.split(arguments) if word.startswith("--")}
    assert typed <= options_of_pytest


COLLECTED = [
    one
    for one in commands("pytest")
    if one.values[1] and one.values[0] != "tests" and not one.values[0].startswith("recipes")
]


@pytest.mark.slow
@pytest.mark.parametrize("arguments, _", COLLECTED)
def test_every_command_of_pytest_that_is_shown_collects_its_tests(arguments, _, tmp_path):
    """What they run is the suite itself; test_your_recipe.py runs those of docs/your-recipe.md."""
    (tmp_path / "torch").mkdir()  # an installed framework: its name and its release are all that the collection reads
    (tmp_path / "torch/__init__.py").touch()
    (tmp_path / "torch-2.13.0.dist-info").mkdir()
    (tmp_path / "torch-2.13.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n")
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "pytest", *shlex.split(arguments), "--collect-only", "-q"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "-n", "0"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("arguments, block", commands("tox"))
def test_every_environment_of_tox_that_is_shown_exists(arguments, block):
    tox = configparser.ConfigParser()
    tox.read(ROOT / "tox.ini")
    words = shlex.split(arguments)
    assert f"testenv:{words[words.index('-e') + 1]}" in tox


def test_the_pages_show_commands_of_each_kind():
    assert len(commands("stele")) > 100 and len(commands("pytest")) > 10 and len(commands("tox")) > 5
