"""The check on a machine with a GPU, as far as it can be tested without one."""

import json
import sys

import pytest

from checks import gpu
from stele.measuring import devices

# tox -e gpu


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def script(code, text="done"):
    return (sys.executable, "-c", f"print({text!r}); raise SystemExit({code})")


def test_every_step_of_the_issue_is_there():
    names = [step.name for step in gpu.steps("cuda", ["torch", "jax-cuda"])]
    assert names == [
        "build",
        *(f"ladder-{one}-{name}" for one in ("fp32", "tf32", "bf16", "modes") for name in ("torch", "jax-cuda")),
        "suite", "modes", "same", "slower", "cifar-fast", "cifar-airbench", "tricks",
    ]  # fmt: skip
    [build] = [step for step in gpu.steps("cuda", ["torch", "jax-cuda"]) if step.name == "build"]
    assert build.command[-1] == "jax-cuda"


def test_the_recipes_are_compared_with_their_authors_code_where_it_is(tmp_path):
    compared = [step for step in gpu.steps("cuda", ["torch"], tmp_path) if step.name.startswith("upstream-")]
    assert [step.name for step in compared] == [
        "upstream-cifar-fast", "upstream-trainings-cifar-fast-eager", "upstream-trainings-cifar-fast-compile",
        "upstream-cifar-airbench", "upstream-trainings-cifar-airbench-max-autotune",
        "upstream-trainings-cifar-airbench-compile",
    ]  # fmt: skip
    assert str(tmp_path / "cifar10-airbench") in compared[3].command


def test_the_time_to_accuracy_is_measured_where_a_framework_has_the_task():
    commands = {step.name: step.command for step in gpu.steps("cuda", ["torch", "keras-torch"])}
    assert "torch,keras-torch" in commands["cifar-fast"] and "torch" in commands["cifar-airbench"]
    assert "cifar-airbench" not in {step.name for step in gpu.steps("cuda", ["keras-torch"])}


def test_a_step_that_ended_as_expected_is_not_repeated(folder):
    step = gpu.Step("x", "", script(1), expected=1)
    result = gpu.run(step, "cuda")
    assert result["code"] == 1 and result["output"] == ["done"]
    step.path.parent.mkdir(parents=True)
    step.path.write_text(json.dumps(result))
    assert gpu.load(step, "cuda") == result
    assert gpu.load(step, "cpu") is None
    assert gpu.load(step._replace(command=script(0)), "cuda") is None
    assert gpu.load(step._replace(expected=0), "cuda") is None


def test_the_page_shows_each_step_and_escapes_its_output(folder):
    done, failed, later = (gpu.Step(name, "a | b", script(code)) for name, code in (("a", 0), ("b", 3), ("c", 0)))
    text = gpu.markdown([(done, gpu.run(done, "cpu")), (failed, gpu.run(failed, "cpu")), (later, None)])
    assert "| a | a \\| b | yes |" in text and "no: exit code 3" in text and "not run yet" in text


def test_without_a_device_nothing_runs(folder, monkeypatch, capsys):
    monkeypatch.setattr(devices, "first", lambda: None)
    monkeypatch.setattr(sys, "argv", ["gpu.py"])
    assert gpu.main() == 2
    assert "no NVIDIA device" in capsys.readouterr().err
