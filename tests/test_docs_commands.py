"""Every ``stele`` command in a block of code of the documentation is executed, from an empty folder, without a network.

Environments whose workers return scripted numbers answer in place of the frameworks, and nothing is built, so a command
takes about a second. ``scripts/examples`` executes the commands of the tutorial and of the examples with real releases.
"""

import contextlib
import dataclasses
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

import gate_records
from fakes import INSPECTION
from stele import __main__ as entry_point
from stele import environments
from stele.commands import bisect
from stele.environments import builds
from stele.environments.state import State
from stele.fleet import cluster, joining, slurm
from stele.gate import baseline, correctness, launcher
from stele.measuring import measure, processors, store
from stele.models import arms
from stele.parity import accuracy, devices, golden_numbers
from stele.parity.ladder import Finding, LadderResult
from stele.releases import candidates, frameworks, index, ledger
from stele.releases.index import Release
from stele_worker import tasks
from test_docs import ROOT, commands
from test_explain import PROFILE
from test_gate_model import NUMBERS, SECONDS
from virtual import Here

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
REAL = {"data": None, "data_origin": {"origin": "official", "fingerprint": "0"}}
OWN_RECIPE = (ROOT / "docs/your-recipe.md").read_text(encoding="utf-8")
SHOWN = [one for one in commands("stele") if one.values[1]]


@pytest.fixture
def shell(add_environment, monkeypatch, tmp_path, run):
    """shell(line) -> exit code of a stele command that a user types in a repository with a model and measured Runs."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    add_environment("fake", **SCRIPT)
    use_several_devices("fake")
    monkeypatch.setattr(processors, "count", lambda: 2)  # a page may show two devices
    for name in RELEASES:
        add_environment(name, **SCRIPT)
        path = environments.folders()[1] / f"{name}.toml"
        path.write_text(
            path.read_text().replace('"scripted"', f'"{name}"')
        )  # the frameworks of a task have recipes
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

    def measure_arms(launched, arms, timeout):
        factors = {arm: 1.1 if launched.trial.arm(arm).name.endswith(SLOW) else 1.0 for arm in arms}
        return {arm: measured(run, factor) for arm, factor in factors.items()}

    agrees = LadderResult([Finding(1, "agrees")], {}, "2026-11-22")
    monkeypatch.setattr(arms, "load", load_arm)
    monkeypatch.setattr(launcher, "measure_arms", measure_arms)
    monkeypatch.setattr("stele.gate.timing.passes_at_once", lambda *_, **__: 1)
    monkeypatch.setattr(correctness.examination, "run_ladder", lambda *_, **__: agrees)
    monkeypatch.setattr(devices, "run_ladder", lambda *_, **__: agrees)
    monkeypatch.setattr(measure, "inputs", lambda task: (REAL, None))


def measured(run, factor):
    return dataclasses.replace(
        run,
        seconds=tuple(factor * one for one in run.seconds),
        blocks=(0.01, 0.011) * 4,
        returned=(0.001, 0.0011) * 4,
        device_memory=2**20,
        plan={**run.plan, "target": 0.1},
        accuracy=0.2,
        data_seconds=0.1,
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


@pytest.mark.parametrize("line, _", SHOWN)
def test_every_command_that_is_shown_works(shell, line, _):
    worse = line.startswith(("gate", "bisect", "fleet gate"))  # NEW may be worse: see SLOW
    assert shell(line) in ((0, 1) if worse else (0,))
