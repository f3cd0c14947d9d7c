"""The suite as a user runs it, ``pytest perf_tests``, with the two fakes for frameworks.

It runs in this process, which has imported everything already. A separate process runs it if a signal stops it.
"""

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import textwrap
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from fakes import SCRIPTED, SHORT, correct_numbers
from processes import alive, wait_until
from stele import environments, files
from stele.gate import baseline
from stele.measuring import conditions, store

ROOT = Path(__file__).parents[1]
SECONDS = [0.5, 0.012, 0.010, 0.011]


@pytest.fixture(scope="module")
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


def test_pytest_benchmark_stores_the_workers_durations(suite, tmp_path):
    suite.add("steady")
    results = tmp_path / "benchmark.json"
    done = suite("--framework=steady", "--task=gru", "-k", "training", f"--benchmark-json={results}")
    assert done.returncode == 0, done.stdout
    [benchmark] = json.loads(results.read_text())["benchmarks"]
    assert benchmark["stats"]["data"] == pytest.approx(SECONDS[1:])
    assert benchmark["group"] == "gru train"
    assert benchmark["name"] == "test_training[gru-steady]"
    assert benchmark["extra_info"]["seconds"] == SECONDS
    assert benchmark["extra_info"]["derived"]["samples_per_second"] == pytest.approx(64 / 0.011)


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


def test_each_run_is_written_and_shown(suite):
    suite.add("steady")
    done = suite("--framework=steady", "--task=gru")
    runs = store.load_all(suite.folder / "runs")
    assert sorted(run.phase for run in runs) == ["infer", "train"]
    assert "steady  gru train  [? 11.0 ?] ms  5,818 reviews/s  synthetic data" in done.stdout


def test_the_oracle_runs_inference_and_agrees(suite):
    """All parts with real arithmetic: data, worker, clock, Run, golden numbers, tables."""
    suite.add_oracle()
    done = suite("--framework=numpy", "--task=gru", "-k", "inference")
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    assert "synthetic" in done.stdout
    [run] = store.load_all(suite.folder / "runs")
    assert len(run.counted_seconds) == 5
    assert run.host_memory and run.versions["numpy"]


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


def test_a_hanging_worker_fails_one_test(suite):
    suite.add("hanging", infer="hang")
    done = suite("--framework=hanging", "--task=gru", f"--worker-timeout={SHORT}", "-k", "inference")
    assert f"sent no message for {SHORT} s during 'infer' and was stopped" in done.stdout
    assert "1 failed" in done.stdout


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
    assert "3 skipped" in done.stdout  # training, inference, and parity, which --benchmark-only leaves out


def test_a_cell_that_an_environment_lacks_is_skipped_with_the_reason(suite):
    script = {"seconds": SECONDS, "numbers": correct_numbers("gru")}
    command = [sys.executable, str(SCRIPTED)]
    suite._describe("narrow", {"SCRIPT": json.dumps(script)}, command=command)
    with (suite.folder / "narrow.toml").open("a") as file:
        file.write('\n[absent]\n"gru train" = "It only infers"\n')
    done = suite("--framework=narrow", "--task=gru")
    assert "1 passed, 2 skipped" in done.stdout
    assert "It only infers" in done.stdout


def test_an_environment_that_is_not_built_is_skipped_with_the_command_that_builds_it(suite):
    suite.add("steady")
    done = suite("--framework=jax==0.0.1,steady", "--task=gru")
    assert "2 passed, 4 skipped" in done.stdout
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
        "'damaged' is broken: its interpreter no longer exists. Rebuild it with: stele env make damaged"
        in done.stdout
    )
    assert "1 failed" in done.stdout or "1 error" in done.stdout


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--framework=pytorch", "Unknown framework 'pytorch'. Did you mean 'torch'?"),
        ("--task=cnnn", "Unknown task 'cnnn'. Did you mean 'cnn'?"),
        ("--precision=tf32", "Precision tf32 needs a GPU"),
    ],
)
def test_a_wrong_option_is_a_usage_error_with_advice(suite, option, message):
    done = suite(option)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left_behind_when_the_suite_is_stopped(suite, number, tmp_path):
    note = tmp_path / "pid"
    source = textwrap.dedent(f"""
        import os, time
        from stele_worker import __main__, verbs
        def hang(request, tell):
            open({str(note)!r}, "w").write(str(os.getpid()))
            time.sleep(600)
        verbs.do = hang
        __main__.main()
    """)
    suite._describe("hanging", {}, command=[sys.executable, "-c", source])
    arguments = suite.arguments("--framework=hanging", "--task=resnet50", "-k", "inference")
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=ROOT,
        env={**os.environ, **suite.variables()},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        wait_until(lambda: note.exists() and note.read_text(), seconds=30)
        running.send_signal(number)
        running.wait(30)
    wait_until(lambda: not alive(int(note.read_text())))


def test_collecting_the_suite_imports_no_framework():
    code = (
        "import sys, pytest; status = pytest.main(['perf_tests', '--collect-only', '-q']);"
        "print('FRAMEWORKS', sorted({'torch', 'jax', 'tensorflow', 'keras'} & set(sys.modules)), int(status))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "FRAMEWORKS [] 0" in done.stdout
    assert f"[gru-{environments.names()[0]}]" in done.stdout
