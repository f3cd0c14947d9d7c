"""Measured durations in pytest-benchmark."""

import json

import pytest

from tests.support.suites import SECONDS


def test_pytest_benchmark_stores_the_workers_durations(suite, tmp_path):
    suite.add("steady")
    results = tmp_path / "benchmark.json"
    done = suite("--framework=steady", "--task=gru", "-k", "training", f"--benchmark-json={results}")
    assert done.returncode == 0, done.stdout
    [benchmark] = json.loads(results.read_text())["benchmarks"]
    assert benchmark["stats"]["data"] == pytest.approx(SECONDS[1:])
    assert benchmark["group"] == "gru train"
    assert benchmark["name"] == "test_training[gru-steady]"
    assert benchmark["extra_info"]["steps"]["seconds"] == SECONDS
    assert benchmark["extra_info"]["derived"]["samples_per_second"] == pytest.approx(64 / 0.011)


def test_storage_and_comparison_of_pytest_benchmark_still_work(suite):
    suite.add("steady")
    options = [
        "--framework=steady",
        "--task=gru",
        "-k",
        "inference",
        f"--benchmark-storage={suite.folder / 'stored'}",
    ]
    assert suite(*options, "--benchmark-save=before").returncode == 0
    suite.add("steady", seconds=[2 * value for value in SECONDS])
    done = suite(*options, "--benchmark-compare")
    assert "test_inference[gru-steady] (NOW)" in done.stdout
    assert "test_inference[gru-steady] (0001_before)" in done.stdout
    assert done.returncode == 0
