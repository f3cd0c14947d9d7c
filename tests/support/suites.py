import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from stele import environments
from tests.support.scripted_environments import INSPECTION, SCRIPTED, correct_numbers

SECONDS = [0.5, 0.012, 0.010, 0.011]


@pytest.fixture
def repository(tmp_path):
    """repository(*options) runs pytest in a folder of a user, in a process of its own."""
    folder = tmp_path / "repository"
    folder.mkdir()
    script = {"seconds": SECONDS, "numbers": correct_numbers("gru"), "inspection": INSPECTION}
    lines = [
        'label = "Steady"',
        'framework = "scripted"',
        f"command = {json.dumps([sys.executable, str(SCRIPTED)])}",
    ]
    lines += ["[variables]", f"SCRIPT = {json.dumps(json.dumps(script))}"]
    (tmp_path / "steady.toml").write_text("\n".join(lines))
    names = {
        "STELE_ENVIRONMENTS": str(tmp_path),
        "STELE_CACHE": str(tmp_path / "cache"),
        "STELE_OFFLINE": "1",
    }

    def run(*arguments, cwd=folder):
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
        variables = {**os.environ, **names, "STELE_DATA": ""}
        return subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, check=False, timeout=120)

    run.folder = folder
    return run


SUITE = (
    "--stele-suite",
    "--stele-framework=steady",
    "--stele-task=gru",
    "--stele-scale=smoke",
    "--stele-device=cpu",
)
MODEL = (
    "--stele-model=net.py:build",
    "--stele-framework=steady",
    "--stele-scale=smoke",
    "--stele-device=cpu",
)
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """Shared by all tests here, because creating the synthetic reviews takes time."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def suite(tmp_path, cache):
    """suite(ids, *options) runs perf_tests on environments that were added with suite.add(id, script)."""
    return Suite(tmp_path, cache)


class Outcome(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


class Suite:
    def __init__(self, folder, cache):
        self.folder, self.cache = folder, cache

    def add(self, name, **script):
        script = {"seconds": SECONDS, "numbers": correct_numbers("gru"), **script}
        path = self.folder / f"{name}.json"  # so that another script is no other description
        path.write_text(json.dumps(script))
        self._describe(name, {"SCRIPT": f"@{path}"}, command=[sys.executable, str(SCRIPTED)])

    def add_oracle(self):
        self._describe("numpy", {}, framework="numpy", imports=["numpy"])

    def _describe(self, name, variables, framework="scripted", **facts):
        lines = [f'label = "{name}"', f'framework = "{framework}"']
        lines += [f"{key} = {json.dumps(value)}" for key, value in facts.items()]
        lines += ["[variables]", *(f"{key} = {json.dumps(value)}" for key, value in variables.items())]
        (self.folder / f"{name}.toml").write_text("\n".join(lines))

    def arguments(self, *options):
        common = [f"--runs={self.folder / 'runs'}", "--scale=smoke"]
        common += ["--device=cpu", "--threads=1", "-p", "no:cacheprovider", "--benchmark-only"]
        return ["perf_tests", *common, *options]

    def variables(self):
        return {
            "STELE_ENVIRONMENTS": str(self.folder),
            "STELE_CACHE": str(self.cache),
            "STELE_DATA": "",
            "STELE_OFFLINE": "1",
        }

    def __call__(self, *options):
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            for name, value in self.variables().items():
                patch.setenv(name, value)
            patch.chdir(ROOT)
            environments.described.cache_clear()
            # importlib, because modules in tests and perf_tests share names; no:unraisableexception, because it runs
            # the garbage collector five times at the end, over the objects of all these tests
            extra = ["--import-mode=importlib", "-p", "no:unraisableexception"]
            status = pytest.main([*self.arguments(*options), *extra])
        environments.described.cache_clear()
        return Outcome(status, out.getvalue(), err.getvalue())
