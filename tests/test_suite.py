"""The suite as a user runs it, ``pytest perf_tests``, with the two fakes for frameworks.

In this process, which has imported everything already; in one of its own where it is stopped.
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

from fakes import SCRIPTED, well
from processes import alive, wait_until
from stele import environments
from stele.gate import baseline
from stele.measuring import store

ROOT = Path(__file__).parents[1]
SECONDS = [0.5, 0.012, 0.010, 0.011]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """One for all tests here: making the synthetic reviews takes a moment."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def suite(tmp_path, cache):
    """suite(ids, *options) runs perf_tests on environments that were added with suite.add(id, script)."""
    return Suite(tmp_path, cache)


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


class Suite:
    def __init__(self, folder, cache):
        self.folder, self.cache = folder, cache

    def add(self, name, **script):
        script = {"seconds": SECONDS, "numbers": well("gru"), **script}
        self._describe(name, {"SCRIPT": json.dumps(script)}, command=[sys.executable, str(SCRIPTED)])

    def add_oracle(self):
        self._describe("numpy", {}, framework="numpy", imports=["numpy"])

    def _describe(self, name, variables, framework="scripted", **facts):
        lines = [f'label = "{name}"', f'framework = "{framework}"']
        lines += [f"{key} = {json.dumps(value)}" for key, value in facts.items()]
        lines += ["[variables]", *(f"{key} = {json.dumps(value)}" for key, value in variables.items())]
        (self.folder / f"{name}.toml").write_text("\n".join(lines))

    def arguments(self, *options):
        fixed = [f"--runs={self.folder / 'runs'}", "--scale=smoke"]
        fixed += ["--device=cpu", "--threads=1", "-p", "no:cacheprovider", "--benchmark-only"]
        return ["perf_tests", *fixed, *options]

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
            environments.rows.cache_clear()
            # two modules here and there have one name; and at its end a run would collect the garbage of all these
            # tests, five times
            inner = ["--import-mode=importlib", "-p", "no:unraisableexception"]
            status = pytest.main([*self.arguments(*options), *inner])
        environments.rows.cache_clear()
        return Done(status, out.getvalue(), err.getvalue())


def test_the_workers_durations_are_what_pytest_benchmark_stores(suite, tmp_path):
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


def test_each_run_is_written_and_shown(suite):
    suite.add("steady")
    done = suite("--framework=steady", "--task=gru")
    runs = store.load_all(suite.folder / "runs")
    assert sorted(run.phase for run in runs) == ["infer", "train"]
    assert "steady  gru train  [? 11.0 ?] ms  5,818 reviews/s  synthetic data" in done.stdout


def test_the_oracle_infers_and_agrees(suite):
    """The whole chain on true arithmetic: data, worker, clock, Run, golden numbers, tables."""
    suite.add_oracle()
    done = suite("--framework=numpy", "--task=gru", "-k", "inference")
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    assert "synthetic" in done.stdout
    [run] = store.load_all(suite.folder / "runs")
    assert len(run.counted) == 5
    assert run.host_memory and run.versions["numpy"]


def test_pytest_benchmarks_own_storage_and_comparison_work_beside_it(suite):
    suite.add("steady")
    asked = [
        "--framework=steady",
        "--task=gru",
        "-k",
        "inference",
        f"--benchmark-storage={suite.folder / 'kept'}",
    ]
    assert suite(*asked, "--benchmark-save=before").returncode == 0
    suite.add("steady", seconds=[2 * value for value in SECONDS])
    done = suite(*asked, "--benchmark-compare")
    assert "test_inference[gru-steady] (NOW)" in done.stdout
    assert "test_inference[gru-steady] (0001_before)" in done.stdout
    assert done.returncode == 0


def test_a_test_that_is_slower_than_its_baseline_fails_as_that_test(suite):
    suite.add("steady")
    asked = ["--framework=steady", "--task=gru", "-k", "inference", f"--baselines={suite.folder / 'kept'}"]
    done = suite(*asked, "--launches=6", "--save-baseline")
    assert "1 passed" in done.stdout
    [saved] = baseline.promote([], suite.folder / "kept")
    assert f"{saved.parent.name}/candidates/{saved.name}" in done.stdout
    assert len(store.load_all(suite.folder / "runs")) == 6

    done = suite(*asked, "--launches=6", "--against-baseline")
    assert "1 passed" in done.stdout
    assert "PASS  gru infer  step" in done.stdout

    suite.add("steady", seconds=[1.2 * value for value in SECONDS])
    done = suite(*asked, "--launches=6", "--against-baseline")
    assert "1 failed" in done.stdout
    assert "steady gru infer against its baseline: step 20.0 % slower in 6 launches" in done.stdout

    done = suite(*asked, "--against-baseline")
    assert "1 skipped" in done.stdout
    assert "unknown against its baseline: all this session has 1 launches" in done.stdout


@pytest.mark.parametrize(
    ("deed", "message"),
    [
        ("segfault", "crashed during 'train': killed by SIGSEGV"),
        ("garbage", "answered garbage during 'train'"),
    ],
)
def test_a_broken_worker_is_one_failing_test_and_the_suite_goes_on(suite, deed, message):
    suite.add("broken", train=deed)
    suite.add("steady")
    done = suite("--framework=broken,steady", "--task=gru", "-k", "training")
    assert done.returncode == 1
    assert message in done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert "worker.py" not in done.stdout  # the reader sees the message, not this house


def test_a_hanging_worker_is_one_failing_test(suite):
    suite.add("hanging", infer="hang")
    done = suite("--framework=hanging", "--task=gru", "--worker-timeout=0.5", "-k", "inference")
    assert "gave no sign of life for 0.5 s during 'infer' and was stopped" in done.stdout
    assert "1 failed" in done.stdout


def test_a_recipe_that_computes_something_else_fails_and_shows_no_speed(suite):
    suite.add("wrong", numbers={**well("gru"), "repeats": False})
    done = suite("--framework=wrong", "--task=gru", "-k", "inference")
    assert "1 failed" in done.stdout
    assert "wrong  gru infer  broken at rung 8, inference: two calls on one batch differ" in done.stdout
    assert "reviews/s" not in done.stdout


def test_a_framework_that_is_not_installed_is_skipped_with_the_line_to_type(suite):
    suite._describe("absent", {}, imports=["no_such_framework"])
    done = suite("--framework=absent", "--task=gru")
    assert done.returncode == 0
    assert "no_such_framework not installed: pip install -e '.[absent]' -c constraints.txt" in done.stdout
    assert "3 skipped" in done.stdout  # training, inference, and parity, which --benchmark-only leaves out


def test_a_cell_that_a_row_cannot_fill_is_skipped_with_its_reason(suite):
    script = {"seconds": SECONDS, "numbers": well("gru")}
    command = [sys.executable, str(SCRIPTED)]
    suite._describe("narrow", {"SCRIPT": json.dumps(script)}, command=command)
    with (suite.folder / "narrow.toml").open("a") as file:
        file.write('\n[absent]\n"gru train" = "It only infers"\n')
    done = suite("--framework=narrow", "--task=gru")
    assert "1 passed, 2 skipped" in done.stdout
    assert "It only infers" in done.stdout


def test_an_environment_that_was_not_made_is_skipped_with_the_line_to_type(suite):
    suite.add("steady")
    done = suite("--framework=jax==0.0.1,steady", "--task=gru")
    assert "2 passed, 4 skipped" in done.stdout
    assert "not made: stele env make 'jax==0.0.1'" in done.stdout


def test_an_environment_that_is_broken_fails(suite):
    """It was there, so that its absence is no excuse."""
    suite._describe(
        "spoilt", {}, imports=["json"], python=f"=={sys.version_info.major}.{sys.version_info.minor}.*"
    )
    with (suite.folder / "spoilt.toml").open("a") as file:
        file.write('\n[requirements]\n"json" = "why not"\n')
    lock = suite.folder / "spoilt.lock"
    lock.write_text("json==1.0\n")
    (suite.cache / "environments" / hashlib.sha256(lock.read_bytes()).hexdigest()[:16]).mkdir(parents=True)
    done = suite("--framework=spoilt", "--task=gru", "-k", "training")
    assert "'spoilt' is broken: its interpreter is gone: stele env make spoilt" in done.stdout
    assert "1 failed" in done.stdout or "1 error" in done.stdout


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--framework=pytorch", "Unknown framework 'pytorch'. Did you mean 'torch'?"),
        ("--task=cnnn", "Unknown task 'cnnn'. Did you mean 'cnn'?"),
        ("--precision=tf32", "Precision tf32 needs a GPU"),
    ],
)
def test_a_wrong_option_is_a_usage_error_that_says_what_to_do(suite, option, message):
    done = suite(option)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left_behind_when_the_suite_is_stopped(suite, ending, tmp_path):
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
    asked = suite.arguments("--framework=hanging", "--task=resnet50", "-k", "inference")
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *asked],
        cwd=ROOT,
        env={**os.environ, **suite.variables()},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        wait_until(lambda: note.exists() and note.read_text(), seconds=30)
        running.send_signal(ending)
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
