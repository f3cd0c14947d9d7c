"""What a test says while it waits."""

import os
import subprocess
import sys
import time

import pytest

from stele.measuring import lock
from tests.support.suites import SUITE


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_test_that_waits_says_for_what(repository, monkeypatch, tmp_path, workers):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *SUITE, "-k", "inference", *workers]
    names = {"STELE_ENVIRONMENTS": str(tmp_path), "STELE_OFFLINE": "1", "STELE_DATA": ""}
    with (tmp_path / "output").open("w") as output:
        with lock.machine("stele gate a b", wait=True, say=print):
            running = subprocess.Popen(
                command, cwd=repository.folder, env={**os.environ, **names}, stdout=output, stderr=output
            )
            deadline = time.monotonic() + 60
            while "waiting for another" not in (text := (tmp_path / "output").read_text()):
                assert time.monotonic() < deadline and running.poll() is None, text
                time.sleep(0.1)
        assert running.wait(60) == 0
    assert "stele: waiting for another measurement on this machine: stele gate a b (process" in text
