"""Two replacements of a framework: ``oracle`` computes with NumPy, and ``scripted`` sends prepared answers."""

import functools
import json
import os
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

from stele import __main__ as entry_point
from stele import environments
from stele.environments import ORACLE
from stele.measuring import lock, processors
from stele.measuring.settings import Settings
from stele.measuring.worker import Worker
from tests.support.runs import make_run
from tests.support.scripted_environments import SCRIPTED, scripted_environment

SLOW = "slow"  # a marker
# the many small products of the oracle take several times as long with two threads, which wait for each other
threadpool_limits(1)
os.environ["OPENBLAS_NUM_THREADS"] = "1"
# the tests of several processes, and the measurements on this machine, do not wait for each other
LOCKS = tempfile.TemporaryDirectory(prefix="stele-locks-")
os.environ[lock.VARIABLE] = LOCKS.name
# a test can start a suite in a separate process; with this variable set, its benchmarks would be disabled
os.environ.pop("PYTEST_XDIST_WORKER", None)
# each test has a cache of its own, into which real data would be read for seconds; synthetic data is enough
os.environ.pop("STELE_DATA", None)
os.environ["STELE_OFFLINE"] = "1"
# many tests parse a command line, and building the parser takes longer than most of them
entry_point.parser = functools.cache(entry_point.parser)
entry_point.parser()

# the tests in tests/fuzz draw few examples, the same in each run; `tox -e fuzz` draws many others
COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("tests", max_examples=20, derandomize=True, database=None, **COMMON)
settings.register_profile("fuzz", max_examples=1000, **COMMON)
settings.load_profile("tests")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Use a process per processor if only these tests run. Performance tests never run in parallel."""
    folder = Path(__file__).parent
    paths = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    only_tests = all(path.is_relative_to(folder) for path in paths)
    if only_tests and config.option.numprocesses is None and not hasattr(config, "workerinput"):
        config.option.numprocesses, config.option.dist = processors.count(), "worksteal"


def pytest_configure(config):
    config.addinivalue_line("markers", f"{SLOW}: takes some seconds or minutes; `pytest tests -m {SLOW}` runs it")


def pytest_collection_modifyitems(config, items):
    """Stop a test that hangs, with a traceback. Leave slow tests out, unless a part of the tests is named."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(300))
    if leaves_slow_out(config):
        slow = [item for item in items if item.get_closest_marker(SLOW)]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]


def leaves_slow_out(config):
    """Return whether this is ``pytest tests``, for all tests."""
    folder = Path(__file__).parent
    return not config.option.markexpr and all(Path(argument).resolve() == folder for argument in config.args)


def pytest_terminal_summary(terminalreporter, config):
    if leaves_slow_out(config):
        terminalreporter.write_line(f"Slow tests were left out. .ci/run runs them, and: pytest tests -m {SLOW}")


@pytest.fixture
def start(tmp_path):
    """start(environment) -> a running Worker, which is stopped at the end of the test."""
    workers = []

    def start(environment, **options):
        variables = Settings(device="cpu", threads=1).variables()
        workers.append(Worker(environment, log=tmp_path / "worker.log", variables=variables, **options))
        return workers[-1]

    yield start
    for worker in workers:
        worker.close(graceful=False)


@pytest.fixture
def scripted(start):
    """scripted(verb="action", seconds=[...]) -> a Worker that follows the script."""

    def scripted(timeout=20.0, **script):
        return start(scripted_environment(script), timeout=timeout)

    return scripted


@pytest.fixture
def oracle(start):
    """A Worker that computes with NumPy."""
    return start(ORACLE)


@pytest.fixture
def run():
    """A Run as on a quiet machine: a slow first step, then steps of 10, 11 and 12 ms, repeated."""
    return make_run()


@pytest.fixture
def describe(monkeypatch, tmp_path):
    """describe(name, **facts) adds an environment; data is synthetic, and all files are in tmp_path."""
    for variable in ("STELE_ENVIRONMENTS", "STELE_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setenv("STELE_OFFLINE", "1")
    monkeypatch.setenv("COLUMNS", "10000")  # no line of a gate is folded
    monkeypatch.delenv("STELE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)

    def describe(name, **facts):
        lines = [f"{key} = {json.dumps(value)}" for key, value in {"label": name.title(), **facts}.items()]
        (tmp_path / f"{name}.toml").write_text("\n".join(lines))
        environments.described.cache_clear()

    yield describe
    environments.described.cache_clear()


@pytest.fixture
def add_environment(describe):
    """add_environment(name, **script) adds an environment with a worker that follows the script."""

    def add_environment(name, /, *, absent=None, **script):
        describe(name, framework="scripted", command=[sys.executable, str(SCRIPTED)])
        with (Path.cwd() / f"{name}.toml").open("a") as file:
            file.write(f"\n[variables]\nSCRIPT = {json.dumps(json.dumps(script))}\n[absent]\n")
            file.writelines(f"{cell!r} = {why!r}\n" for cell, why in (absent or {}).items())
        environments.described.cache_clear()

    return add_environment
