"""What is done for a GPU, as far as it can be tested without one."""

import dataclasses
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from checks import gpu
from stele import environments
from stele.commands import env
from stele.environments import ORACLE, pins
from stele.environments.description import Environment
from stele.measuring import conditions, devices, worker
from stele.measuring.settings import Settings
from stele_worker import clock, measurement, process, verbs

FOR_GPU = [name for name in environments.first_modes() if name.endswith("-cuda")]


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A /dev with one NVIDIA device."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    (tmp_path / "nvidia3").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("allowed", "first"), [(None, "0"), ("2,1", "2"), ("GPU-1a2b", "GPU-1a2b"), ("", None), ("-1", None)]
)
def test_the_first_device_that_may_be_used(root, monkeypatch, allowed, first):
    if allowed is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", allowed)
    assert devices.first(root) == first


def test_without_a_device_file_there_is_no_device(tmp_path):
    (tmp_path / "nvidiactl").touch()
    assert devices.first(tmp_path) is None


@pytest.mark.parametrize(("first", "default"), [("1", "cuda"), (None, "cpu")])
def test_the_default_device(monkeypatch, first, default):
    monkeypatch.setattr(devices, "first", lambda: first)
    assert devices.default() == default


def test_a_worker_on_a_gpu_sees_one_device_and_tf32_only_in_that_precision(monkeypatch):
    monkeypatch.setattr(devices, "allowed", lambda count: ["3", "4"][:count])
    for precision in ("fp32", "bf16", "tf32"):
        variables = Settings(device="cuda", precision=precision).variables()
        assert variables["CUDA_VISIBLE_DEVICES"] == "3" and variables["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
        assert variables.get("NVIDIA_TF32_OVERRIDE") == (None if precision == "tf32" else "0")


def test_a_worker_for_several_gpus_sees_as_many(root, monkeypatch):
    assert devices.allowed(2, root) == ["0", "1"]
    for text, names in (("2,1,0", ["2", "1"]), ("GPU-1a2b", ["GPU-1a2b"]), ("3,-1,2", ["3"]), ("", [])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", text)
        assert devices.allowed(2, root) == names
    monkeypatch.setattr(devices, "allowed", lambda count: ["3", "4"][:count])
    assert Settings(device="cuda", devices=2).variables()["CUDA_VISIBLE_DEVICES"] == "3,4"


def test_an_environment_of_the_processor_is_left_out_where_there_is_one_for_the_gpu(monkeypatch):
    monkeypatch.setattr(gpu.environments, "state", lambda environment: SimpleNamespace(status="ready"))
    assert "jax-cuda" in gpu.ready("cuda") and "jax" not in gpu.ready("cuda")
    assert "jax" in gpu.ready("cpu")


def test_a_worker_on_a_cpu_sees_no_device():
    variables = Settings(device="cpu").variables()
    assert variables["CUDA_VISIBLE_DEVICES"] == "-1" and "NVIDIA_TF32_OVERRIDE" not in variables


def test_the_state_is_that_of_the_visible_gpu(monkeypatch):
    asked = []
    monkeypatch.setattr(devices, "first", lambda: "3")
    answer = SimpleNamespace(stdout="1980, 40, 300, 0x0\n")
    monkeypatch.setattr(conditions.subprocess, "run", lambda command, **_: asked.extend(command) or answer)
    assert conditions.gpu_state()["clocks.sm"] == "1980"
    assert "--id=3" in asked


def test_the_kernels_that_cuda_compiles_stay_for_each_lock(tmp_path, monkeypatch):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    started = []
    monkeypatch.setattr(worker, "Worker", lambda *_, **given: started.append(given["variables"]))
    for name, content in (("a", "x==1"), ("b", "x==1"), ("c", "x==2")):
        lock = tmp_path / f"{name}.lock"
        lock.write_text(content)
        worker.launch(dataclasses.replace(ORACLE, lock=lock), Settings(device="cuda"))
    first, same, other = (variables["CUDA_CACHE_PATH"] for variables in started)
    assert first == same != other and first.startswith(str(tmp_path))


def test_a_cold_start_has_an_empty_folder_for_kernels_too(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(worker, "Worker", lambda *_, **given: started.append(given["variables"]))
    worker.launch(ORACLE, Settings(device="cuda"), caches=tmp_path / "empty")
    assert started[0]["CUDA_CACHE_PATH"].startswith(str(tmp_path / "empty"))


@pytest.mark.parametrize(("device", "limits"), [("cpu", [2]), ("cuda", [])])
def test_the_threads_that_give_work_to_a_gpu_may_use_all_processors(device, limits, monkeypatch):
    limited = []
    monkeypatch.setattr(process, "limit_processors", lambda count, part=0: limited.append(count))
    monkeypatch.setattr(verbs.frameworks, "load", lambda name: SimpleNamespace(
        __name__="fake", configure=lambda settings: None, versions=dict, flags=dict))  # fmt: skip
    monkeypatch.setattr(verbs.modes, "resolve", lambda framework, module, settings: settings)
    monkeypatch.setattr(verbs, "configuration", {})
    settings = Settings(device=device, threads=2).as_fields()
    verbs.configure(None, "fake", {**settings, "devices": 1})
    assert limited == limits


def test_the_stolen_time_of_a_launch_on_a_gpu_is_that_of_all_processors(monkeypatch):
    monkeypatch.setattr(conditions.processors, "usable", lambda: [0, 1, 2])
    names = {
        device: conditions.pinned_processors(Settings(device=device, threads=2), 1)
        for device in ("cpu", "cuda")
    }
    assert names == {"cpu": ["cpu0", "cpu1"], "cuda": ["cpu0", "cpu1", "cpu2"]}


def test_steps_of_the_first_seconds_are_not_steady():
    seconds = [1.0, *[0.1] * 30]
    assert clock.find_steady_step(seconds, 3, 0.05) == 1
    assert clock.find_steady_step(seconds, 3, 0.05, least=2.0) == 10


def test_rows_are_repeated_until_the_least_seconds_have_passed():
    seconds = []
    for _ in measurement.repeat([[0], [1], [2]], seconds, 1.0):
        seconds.append(0.25)
    assert len(seconds) == 4
    assert list(measurement.repeat([[0], [1]], [], 0.0)) == [[0], [1]]


def test_the_first_step_is_left_out_of_the_peak_where_the_framework_can():
    forgotten = []
    measurement.forget_peak_memory(SimpleNamespace(forget_peak_memory=lambda: forgotten.append(True)))
    measurement.forget_peak_memory(SimpleNamespace())
    assert forgotten == [True]


@pytest.mark.parametrize(
    ("text", "framework"),
    [("paddlepaddle-gpu==3.3.1", "paddle"), ("onnxruntime-gpu==1.31.1", "onnxruntime")],
)
def test_a_package_for_a_gpu_names_its_framework_on_every_device(text, framework):
    described = [environments.load(name) for name in environments.first_modes() if name not in FOR_GPU]
    pinned = pins.parse(text, described)
    assert pinned.framework == framework and pinned.devices is None
    named = [pins.package_name(each) for each in pinned.requirements]
    assert text.partition("==")[0] in named and text.partition("-gpu")[0] not in named


def test_an_interpreter_may_have_a_build_for_a_gpu():
    paddle = environments.load("paddle")
    assert paddle.devices == ("cpu",)
    assert pins.with_interpreter(paddle, Path("/venv/bin/python")).devices is None


def test_a_pin_and_an_interpreter_do_not_mean_an_environment_for_a_gpu():
    every = [environments.load(name) for name in environments.names()]
    for text in ("jax==0.9.2", "tensorflow==2.20.0", "tensorflow-cpu==2.20.0", "onnxruntime==1.30.0"):
        assert pins.parse(text, every).devices != ("cuda",)
    assert pins.parse("jax-cuda@jax[cuda13]==0.9.2", every).devices == ("cuda",)


@pytest.mark.parametrize("name", FOR_GPU)
def test_environments_for_a_gpu_are_locked_and_built_only_with_a_device(name, monkeypatch):
    environment = environments.load(name)
    assert environment.lock is not None and "--hash=sha256:" in environment.lock.read_text()
    monkeypatch.setattr(devices, "first", lambda: None)
    asked = SimpleNamespace(all=True, python=None)
    assert env.skip_reason(environment, asked) == "it needs an NVIDIA device"
    assert env.skip_reason(environment, SimpleNamespace(all=False, python=None)) is None


def test_an_environment_says_why_it_has_no_gpu():
    reason = environments.load("chainer").why_absent("cnn", "train", device="cuda", precision="fp32")
    assert reason.startswith("Chainer supports only cpu here, not cuda: ") and "CuPy 7" in reason
    plain = Environment("x", "X", "numpy", devices=("cpu",))
    assert (
        plain.why_absent("cnn", "train", device="cuda", precision="fp32")
        == "X supports only cpu here, not cuda"
    )


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
    done, failed, later = (
        gpu.Step(name, "a | b", script(code)) for name, code in (("a", 0), ("b", 3), ("c", 0))
    )
    text = gpu.markdown([(done, gpu.run(done, "cpu")), (failed, gpu.run(failed, "cpu")), (later, None)])
    assert "| a | a \\| b | yes |" in text and "no: exit code 3" in text and "not run yet" in text


def test_without_a_device_nothing_runs(folder, monkeypatch, capsys):
    monkeypatch.setattr(devices, "first", lambda: None)
    monkeypatch.setattr(sys, "argv", ["gpu.py"])
    assert gpu.main() == 2
    assert "no NVIDIA device" in capsys.readouterr().err
