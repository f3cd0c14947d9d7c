"""The meaning of the options."""

import re

import pytest

from pytest_stele import session
from tests.support.suites import SUITE


@pytest.mark.slow
@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf"])
def test_a_timeout_that_is_not_a_positive_number_is_a_usage_error(repository, value):
    done = repository(*SUITE, f"--stele-worker-timeout={value}")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"--stele-worker-timeout {value} is not a positive number of seconds" in done.stderr


@pytest.mark.slow
def test_a_relative_folder_of_the_command_line_starts_where_pytest_was_started(repository):
    (repository.folder / "pytest.ini").write_text("[pytest]\n")
    (repository.folder / "deep").mkdir()
    repository(*SUITE, "--stele-runs=mine", "-k", "inference", cwd=repository.folder / "deep")
    assert len(list((repository.folder / "deep/mine").glob("*.json"))) == 1


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--framework=pytorch", "Unknown framework 'pytorch'. Did you mean 'torch'?"),
        ("--task=cnnn", "Unknown task 'cnnn'. Did you mean 'cnn'?"),
        ("--precision=tf32", "Precision tf32 needs a GPU"),
        ("--stele-precision=fp16", "Unknown value 'fp16' for --stele-precision."),
        ("--stele-device=gpu", "Unknown value 'gpu' for --stele-device. Did you mean 'cuda'?"),
        (
            "--stele-device=cuda",
            "--stele-device cuda: this machine has no NVIDIA GPU that CUDA_VISIBLE_DEVICES allows.",
        ),
        ("--stele-malloc=jemalloc", "Unknown value 'jemalloc' for --stele-malloc. Known: plain, mmap, steady."),
        ("--stele-threads=0", "--stele-threads 0: at least one thread is needed."),
        ("--stele-launches=0", "--stele-launches 0: at least 1 launch is needed."),
        ("--stele-input=8x3", "--stele-input has no effect without --stele-model."),
    ],
)
def test_a_wrong_option_is_a_usage_error_with_advice(suite, option, message, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    done = suite(option)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def collected(done):
    return [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]


def test_only_the_cells_that_exist_here_are_tests(suite):
    suite._describe("here", {}, imports=["json"])
    with (suite.folder / "here.toml").open("a") as file:
        file.write('\n[absent]\n"gru train" = "It only infers"\n')
    suite._describe("absent", {}, imports=["no_such_framework"])
    done = suite("--task=cnn,gru", "--collect-only", "-q")
    here = [name for name in collected(done) if "here" in name or "absent" in name]
    assert here == ["test_inference[cnn-here]", "test_inference[gru-here]", "test_training[cnn-here]"]
    assert "skip" not in done.stdout
    [line] = [line for line in done.stdout.splitlines() if "stele env" in line]
    assert re.fullmatch(
        r"\d+ environments? (is|are) not installed: stele env list; "
        r"\d+ environments are not built: stele env make --all",
        line,
    )


def test_an_environment_that_could_run_none_of_the_tasks_is_not_missed(suite):
    suite._describe("absent", {}, imports=["no_such_framework"])
    with (suite.folder / "absent.toml").open("a") as file:
        file.write('\n[absent]\n"gru" = "It has no GRU"\n')

    def missing(tasks):
        done = suite(f"--task={tasks}", "--collect-only", "-q")
        return sum(map(int, re.findall(r"(\d+) environments? (?:is|are) not installed", done.stdout)))

    assert missing("gru,cnn") == missing("gru") + 1


def test_a_named_environment_lacks_no_task_that_it_has_no_recipe_for(suite):
    suite._describe("here", {}, imports=["json"])
    with (suite.folder / "here.toml").open("a") as file:
        file.write('\n[absent]\n"cnn" = "It has no CNN"\n')
    done = suite("--framework=here", "--task=cnn,gru", "--collect-only", "-q")
    assert collected(done) == ["test_inference[gru-here]", "test_training[gru-here]"]
    assert "stele env" not in done.stdout
