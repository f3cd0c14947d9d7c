"""The plugin in another repository: it does nothing unless it is used, and works beside other plugins."""

import json
import os
import subprocess
import sys
import textwrap
import time
from types import SimpleNamespace

import pytest

from fakes import INSPECTION, SCRIPTED, correct_numbers
from pytest_stele import options, session
from pytest_stele.baselines import marked
from stele import __main__ as entry_point
from stele.data import cache
from stele.measuring import lock

SECONDS = [0.5, 0.012, 0.010, 0.011]
CONFLICTING = ("--device", "--seed", "--runs", "--threads", "--framework", "--task", "--scale", "--launches")


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
        return subprocess.run(
            command, cwd=cwd, env=variables, capture_output=True, text=True, check=False, timeout=120
        )

    run.folder = folder
    return run


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf"])
def test_a_timeout_that_is_not_a_positive_number_is_a_usage_error(repository, value):
    done = repository(*SUITE, f"--stele-worker-timeout={value}")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"--worker-timeout {value} is not a positive number of seconds" in done.stderr


SUITE = (
    "--stele-suite",
    "--stele-framework=steady",
    "--stele-task=gru",
    "--stele-scale=smoke",
    "--stele-device=cpu",
)


def test_every_option_starts_with_stele():
    assert all(
        option.flag.startswith("--stele-") and option.dest.startswith("stele_") for option in options.OPTIONS
    )


def test_the_plugin_imports_nothing_heavy_if_it_is_not_used(repository):
    (repository.folder / "test_modules.py").write_text(
        textwrap.dedent("""
            import sys

            def test_modules():
                assert not {"numpy", "scipy", "rich", "stele", "stele_worker"} & set(sys.modules)
        """)
    )
    done = repository()
    assert "1 passed" in done.stdout, done.stdout


def test_no_option_conflicts_with_another_plugin(repository):
    lines = "\n".join(f"    parser.addoption({name!r}, help='mine')" for name in CONFLICTING)
    (repository.folder / "conftest.py").write_text(f"def pytest_addoption(parser):\n{lines}\n")
    (repository.folder / "test_nothing.py").write_text(
        "def test_nothing(pytestconfig): assert pytestconfig.option.seed == '3'"
    )
    done = repository("--seed=3")
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_every_fixture_and_marker_starts_with_stele(repository):
    done = repository("--fixtures", "--markers")
    fixtures = [
        line
        for line in repository("--fixtures").stdout.splitlines()
        if "pytest_stele" in line and " -- " in line
    ]
    assert len(fixtures) > 5
    assert all(line.startswith("stele_") for line in fixtures)
    assert "@pytest.mark.stele_margin" in done.stdout
    assert "@pytest.mark.margin" not in done.stdout


@pytest.mark.parametrize("more", [(), ("-p", "no:xdist")])
def test_the_built_in_suite_runs_in_another_repository(repository, more):
    done = repository(*SUITE, "--benchmark-only", *more)
    assert "2 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert len(list((repository.folder / ".stele/runs").glob("*.json"))) == 2


def test_the_built_in_suite_writes_to_the_root_when_it_runs_from_a_subfolder(repository):
    (repository.folder / "pytest.ini").write_text("[pytest]\n")
    (repository.folder / "deep").mkdir()
    done = repository(*SUITE, "--benchmark-only", cwd=repository.folder / "deep")
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert (repository.folder / ".stele/runs").is_dir()
    assert not (repository.folder / "deep/.stele").exists()


def test_a_relative_folder_of_the_command_line_starts_where_pytest_was_started(repository):
    (repository.folder / "pytest.ini").write_text("[pytest]\n")
    (repository.folder / "deep").mkdir()
    repository(*SUITE, "--stele-runs=mine", "-k", "inference", cwd=repository.folder / "deep")
    assert len(list((repository.folder / "deep/mine").glob("*.json"))) == 1


def test_the_suite_runs_under_xdist_and_its_table_is_complete(repository):
    done = repository(*SUITE, "-n", "2")
    assert "3 passed" in done.stdout, done.stdout + done.stderr
    assert "gru train, batch 64, smoke" in done.stdout
    assert "gru infer, batch 64, smoke" in done.stdout


def test_a_test_waits_while_another_measurement_runs(repository, monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    with lock.machine("stele gate a b", wait=True, say=print):
        done = repository(*SUITE, "-k", "inference", "--stele-no-wait")
    assert "Another measurement runs on this machine: stele gate a b (process" in done.stdout
    assert done.returncode == 1


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


def test_the_lock_is_entered_again_by_its_own_process(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    with lock.machine("outer", wait=False, say=print), lock.machine("inner", wait=False, say=print):
        assert json.loads((cache.folder() / lock.FILE).read_text())["what"] == "outer"
    assert lock.held == 0


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"what": 3}', "\x00"])
def test_a_damaged_lock_file_is_no_obstacle(monkeypatch, tmp_path, content):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    (tmp_path / lock.FILE).write_text(content)
    with lock.machine("mine", wait=False, say=print):
        pass


def test_a_command_that_measures_does_not_start_beside_another_measurement(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    code = (
        "from stele.measuring import lock\n"
        "with lock.machine('suite', wait=True, say=print): print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        for command in (
            ["gate", "torch", "jax"],
            ["bisect", "jax", "1", "2"],
            ["calibrate"],
            ["releases", "run"],
            ["nightly"],
        ):
            assert entry_point.main([*command, "--no-wait"]) == 2
            assert "Another measurement runs on this machine: suite (process" in capsys.readouterr().err
        other.stdin.close()


MODEL = (
    "--stele-model=net.py:build",
    "--stele-framework=steady",
    "--stele-scale=smoke",
    "--stele-device=cpu",
)


def test_a_model_is_measured_in_training_and_inference(repository):
    (repository.folder / "net.py").touch()
    done = repository(*MODEL, "--benchmark-only")
    assert "2 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert "stele: Scripted: 12 parameters; inputs 8x3 from the signature" in done.stdout
    assert "net.py:build train, batch 64, smoke" in done.stdout
    names = sorted(path.name for path in (repository.folder / ".stele/runs").glob("*.json"))
    assert [name.partition("-")[2] for name in names] == [
        "steady-net.py_build-infer.json",
        "steady-net.py_build-train.json",
    ]


def test_a_model_has_a_baseline(repository):
    (repository.folder / "net.py").touch()
    options = (*MODEL, "--stele-launches=6", "-k", "inference", "--benchmark-only")
    assert "saved" in repository(*options, "--stele-save-baseline").stdout
    promote = [sys.executable, "-m", "stele", "baseline", "promote"]
    subprocess.run(promote, cwd=repository.folder, check=True, capture_output=True)
    done = repository(*options, "--stele-against-baseline")
    assert "1 passed" in done.stdout, done.stdout
    assert "PASS  net.py:build infer" in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--stele-model=nets.py:build",), "there is no file"),
        (("--stele-model=resnet18",), "names no model"),
        (("--stele-model=net.py:build", "--stele-input=8x"), "is not an input such as"),
    ],
)
def test_a_wrong_option_of_a_model_is_a_usage_error(repository, options, message):
    (repository.folder / "net.py").touch()
    done = repository(*options)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert message in done.stderr


def test_a_scale_that_all_selected_tasks_have_may_be_named():
    assert "batch-128" in session.scales_of(["resnet50"])
    assert session.scales_of(["resnet50", "cnn"]) == ("smoke", "quick", "paper", "gate")
    assert session.scales_of(["net.py:build"]) == ("smoke", "quick", "paper")


def test_the_markers_of_a_test_set_its_thresholds():
    marks = [pytest.mark.stele_margin(step=0.02), pytest.mark.stele_margin(step=0.3, host_memory=0.1)]
    item = SimpleNamespace(iter_markers=lambda name: [one.mark for one in marks if one.name == name])
    assert marked(item, "stele_margin") == {"step": 0.02, "host-memory": 0.1}  # the nearest marker counts
    assert marked(item, "stele_tolerance") == {}
