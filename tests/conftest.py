"""Two fakes: ``oracle``, true arithmetic in a real worker, and ``scripted``, answers written in advance."""

import json
import os
import sys
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from fakes import SCRIPTED, scripted_environment
from stele import environments
from stele.environments import ORACLE
from stele.measuring.run import Run
from stele.measuring.settings import Settings, default_threads
from stele.measuring.worker import Worker

# the oracle's many small products take several times as long where two threads wait for each other in each
threadpool_limits(1)
os.environ["OPENBLAS_NUM_THREADS"] = "1"
# a suite that a test starts is a process of its own, with benchmarks: they go where this is set
os.environ.pop("PYTEST_XDIST_WORKER", None)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """A process for each processor where these tests are run alone; what the suite times is never shared."""
    here = Path(__file__).parent
    alone = all(Path(argument.partition("::")[0]).resolve().is_relative_to(here) for argument in config.args)
    if alone and config.option.numprocesses is None and not hasattr(config, "workerinput"):
        config.option.numprocesses, config.option.dist = default_threads(), "worksteal"


def pytest_collection_modifyitems(items):
    """A test that hangs ends, and says where it hung."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture
def start(tmp_path):
    """start(environment) -> a live Worker, ended with the test."""
    workers = []

    def start(environment, **options):
        variables = Settings(device="cpu", threads=1).variables()
        workers.append(Worker(environment, log=tmp_path / "worker.log", variables=variables, **options))
        return workers[-1]

    yield start
    for worker in workers:
        worker.close(patiently=False)


@pytest.fixture
def scripted(start):
    """scripted(verb="deed", seconds=[...]) -> a Worker that does as it is told."""

    def scripted(timeout=20.0, **script):
        return start(scripted_environment(script), timeout=timeout)

    return scripted


@pytest.fixture
def oracle(start):
    """A Worker that computes in NumPy."""
    return start(ORACLE)


@pytest.fixture
def run():
    """A Run as a quiet machine would give it: a slow first step, then 10, 11, 12 ms again and again."""
    return Run(
        when="2026-01-02T03:04:05.678+00:00",
        environment="torch",
        label="PyTorch",
        versions={"torch": "2.13.0", "cuda": None},
        task="cnn",
        phase="train",
        scale="quick",
        settings={"device": "cpu", "precision": "fp32", "threads": 2, "deterministic": False, "seed": 0},
        flags={"threads": 2},
        plan={"warmup": {"window": 5, "tolerance": 0.05, "most": 20}},
        machine={"processor": "Abacus 3000", "processors": 2, "gpus": []},
        data={"origin": "official", "fingerprint": "0123456789abcdef"},
        weights="seeded",
        import_seconds=1.25,
        seconds=(0.5, *[0.010, 0.011, 0.012] * 10),
        warmup=1,
        steady=True,
        batch=64,
        host_memory=300 * 2**20,
        device_memory=None,
        losses=(2.3, *[2.0] * 30),
        accuracy=0.36,
        evaluated=6400,
    )


@pytest.fixture
def described(monkeypatch, tmp_path):
    """described(name, **facts) adds a row; data is synthetic, and everything is written to tmp_path."""
    for variable in ("STELE_ENVIRONMENTS", "STELE_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setenv("STELE_OFFLINE", "1")
    monkeypatch.delenv("STELE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)

    def described(name, **facts):
        lines = [f"{key} = {json.dumps(value)}" for key, value in {"label": name.title(), **facts}.items()]
        (tmp_path / f"{name}.toml").write_text("\n".join(lines))
        environments.rows.cache_clear()

    yield described
    environments.rows.cache_clear()


@pytest.fixture
def row(described):
    """row(name, **script) adds a row that answers as the script says."""

    def row(name, /, *, absent=None, **script):
        described(name, framework="scripted", command=[sys.executable, str(SCRIPTED)])
        with (Path.cwd() / f"{name}.toml").open("a") as file:
            file.write(f"\n[variables]\nSCRIPT = {json.dumps(json.dumps(script))}\n[absent]\n")
            file.writelines(f"{cell!r} = {why!r}\n" for cell, why in (absent or {}).items())
        environments.rows.cache_clear()

    return row
