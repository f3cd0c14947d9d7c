"""The fixtures of the plugin, in the suite with two replacements of frameworks."""

import hashlib
import json
import sys

import pytest

from stele import files
from stele.measuring import conditions, store
from tests.support.scripted_environments import SCRIPTED, SHORT, correct_numbers
from tests.support.suites import SECONDS


def test_an_error_of_the_data_is_shown_once_and_without_a_traceback(suite, tmp_path, monkeypatch):
    suite.add("steady")
    (tmp_path / "data").mkdir()
    (tmp_path / "data/imdb.npz").write_bytes(b"not an archive")
    variables = {**suite.variables(), "STELE_DATA": str(tmp_path / "data")}
    monkeypatch.setattr(suite, "variables", lambda: variables)
    done = suite("--framework=steady", "--task=gru", "-k", "training")
    assert done.returncode == 1
    report = done.stdout.partition("FAILURES")[2].partition("short test summary")[0]
    # the file, and the address of the published one
    assert report.count("imdb.npz") == 1 + report.count("https")
    assert "Traceback" not in done.stdout and "During handling" not in done.stdout


def test_a_full_disk_is_an_error_without_a_traceback(suite, monkeypatch):
    def fail(run, folder):
        raise files.WriteError(f"{folder}: No space left on device.")

    suite.add("steady")
    monkeypatch.setattr(store, "save", fail)
    done = suite("--framework=steady", "--task=gru", "-k", "training")
    assert "runs: No space left on device." in done.stdout
    assert "Traceback" not in done.stdout and "plugin.py" not in done.stdout


def test_a_busy_machine_is_shown_beside_a_result(suite, monkeypatch):
    suite.add("steady")
    monkeypatch.setattr(conditions, "MIN_SECONDS", 0)
    monkeypatch.setattr(conditions, "foreign_share", lambda *_: 0.5)
    done = suite("--framework=steady", "--task=gru", "-k", "training")
    assert done.returncode == 0, done.stdout
    assert "busy machine" in done.stdout.partition("=== stele ===")[2]


@pytest.mark.slow
def test_each_run_is_written_and_shown(suite):
    suite.add("steady")
    done = suite("--framework=steady", "--task=gru")
    runs = store.load_all(suite.folder / "runs")
    assert sorted(run.phase for run in runs) == ["infer", "train"]
    assert "\ngru train, batch 64  [? 11.0 ?] " in done.stdout
    line = "steady  gru train  [? 11.0 ?] ms  5,818 reviews/s  synthetic data"
    assert line not in done.stdout and line in suite("--framework=steady", "--task=gru", "-v").stdout


@pytest.mark.slow
def test_the_oracle_runs_inference_and_agrees(suite):
    """All parts with real arithmetic: data, worker, clock, Run, golden numbers, tables."""
    suite.add_oracle()
    done = suite("--framework=numpy", "--task=gru", "-k", "inference")
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    assert "synthetic" in done.stdout
    [run] = store.load_all(suite.folder / "runs")
    assert len(run.counted_seconds) == 5
    assert run.memory.host and run.framework.versions["numpy"]


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("segfault", "crashed during 'train': killed by SIGSEGV"),
        ("invalid_json", "sent an invalid answer during 'train'"),
    ],
)
def test_a_broken_worker_fails_one_test_and_the_suite_continues(suite, action, message):
    suite.add("broken", train=action)
    suite.add("steady")
    done = suite("--framework=broken,steady", "--task=gru", "-k", "training")
    assert done.returncode == 1
    assert message in done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert "worker.py" not in done.stdout  # the user sees the message, without a traceback


@pytest.mark.slow
def test_a_hanging_worker_fails_one_test(suite):
    suite.add("hanging", infer="hang")
    done = suite("--framework=hanging", "--task=gru", f"--worker-timeout={SHORT}", "-k", "inference")
    assert f"sent no message for {SHORT} s during 'infer' and was stopped" in done.stdout
    assert "1 failed" in done.stdout


@pytest.mark.slow
def test_a_recipe_that_differs_from_the_golden_numbers_fails_and_shows_no_speed(suite):
    suite.add("wrong", numbers={**correct_numbers("gru"), "repeats": False})
    done = suite("--framework=wrong", "--task=gru", "-k", "inference")
    assert "1 failed" in done.stdout
    assert "wrong  gru infer  inference differs (rung 8): two calls on one batch differ" in done.stdout
    assert "reviews/s" not in done.stdout


def test_a_framework_that_is_not_installed_is_skipped_with_the_command_that_installs_it(suite):
    suite._describe("absent", {}, imports=["no_such_framework"])
    done = suite("--framework=absent", "--task=gru")
    assert done.returncode == 0
    assert "no_such_framework is not installed. Run: pip install 'pytest-stele[absent]'" in done.stdout
    assert "2 skipped" in done.stdout  # training and inference


def test_a_named_environment_that_lacks_all_cells_of_a_phase_is_skipped_with_the_reason(suite):
    script = {"seconds": SECONDS, "numbers": correct_numbers("gru")}
    command = [sys.executable, str(SCRIPTED)]
    suite._describe("narrow", {"SCRIPT": json.dumps(script)}, command=command)
    with (suite.folder / "narrow.toml").open("a") as file:
        file.write('\n[absent]\n"gru train" = "It only infers"\n')
    done = suite("--framework=narrow", "--task=gru")
    assert "1 passed, 1 skipped" in done.stdout
    assert "It only infers" in done.stdout


def test_an_environment_that_is_not_built_is_skipped_with_the_command_that_builds_it(suite):
    suite.add("steady")
    done = suite("--framework=jax==0.0.1,steady", "--task=gru")
    assert "2 passed, 2 skipped" in done.stdout
    assert "not built. Build it with: stele env make 'jax==0.0.1'" in done.stdout


def test_an_environment_that_is_broken_fails(suite):
    """It was built before, so it must not be skipped."""
    python = f"=={sys.version_info.major}.{sys.version_info.minor}.*"
    suite._describe("damaged", {}, imports=["json"], python=python)
    with (suite.folder / "damaged.toml").open("a") as file:
        file.write('\n[requirements]\n"json" = "why not"\n')
    lock = suite.folder / "damaged.lock"
    lock.write_text("json==1.0\n")
    key = hashlib.sha256(python.encode() + lock.read_bytes()).hexdigest()[:16]
    (suite.cache / "environments" / key).mkdir(parents=True)
    done = suite("--framework=damaged", "--task=gru", "-k", "training")
    assert (
        "'damaged' is broken: its interpreter no longer exists. Rebuild it with: stele env make damaged" in done.stdout
    )
    assert "1 failed" in done.stdout or "1 error" in done.stdout
