"""Runs compared with a baseline in a test."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from pytest_stele.baselines import marked
from stele.gate import baseline
from stele.measuring import store
from tests.support.suites import MODEL, SECONDS


@pytest.mark.slow
def test_a_model_has_a_baseline(repository):
    (repository.folder / "net.py").touch()
    options = (*MODEL, "--stele-launches=6", "-k", "inference", "--benchmark-only")
    assert "saved" in repository(*options, "--stele-save-baseline").stdout
    promote = [sys.executable, "-m", "stele", "baseline", "promote"]
    subprocess.run(promote, cwd=repository.folder, check=True, capture_output=True)
    done = repository(*options, "--stele-against-baseline")
    assert "1 passed" in done.stdout, done.stdout
    assert "PASS  net.py:build infer" in done.stdout


def test_the_markers_of_a_test_set_its_thresholds():
    marks = [pytest.mark.stele_margin(step=0.02), pytest.mark.stele_margin(step=0.3, host_memory=0.1)]
    item = SimpleNamespace(iter_markers=lambda name: [one.mark for one in marks if one.name == name])
    assert marked(item, "stele_margin") == {"step": 0.02, "host-memory": 0.1}  # the nearest marker counts
    assert marked(item, "stele_tolerance") == {}


@pytest.mark.slow
def test_a_test_that_is_slower_than_its_baseline_fails(suite):
    suite.add("steady")
    options = [
        "--framework=steady",
        "--task=gru",
        "-k",
        "inference",
        f"--baselines={suite.folder / 'stored'}",
    ]
    done = suite(*options, "--launches=6", "--save-baseline")
    assert "1 passed" in done.stdout
    [saved] = baseline.promote([], suite.folder / "stored")
    assert f"{saved.parent.name}/candidates/{saved.name}" in done.stdout
    assert len(store.load_all(suite.folder / "runs")) == 6

    done = suite(*options, "--launches=6", "--against-baseline")
    assert "1 passed" in done.stdout
    assert "PASS  gru infer  step" in done.stdout

    suite.add("steady", seconds=[1.2 * value for value in SECONDS])
    done = suite(*options, "--launches=6", "--against-baseline")
    assert "1 failed" in done.stdout
    assert "steady gru infer against its baseline: step 20.0 % slower in 6 launches" in done.stdout

    done = suite(*options, "--against-baseline")
    assert "1 skipped" in done.stdout
    assert "unknown against its baseline: all this session has 1 launches" in done.stdout
