"""The conditions of a gate: a user's model runs as the user runs it, and what Stele changes is said first."""

import argparse
import dataclasses
import json
import os
import subprocess
from pathlib import Path

import pytest

from stele import environments
from stele.commands import options
from stele.environments.packages import Difference
from stele.errors import SteleError
from stele.gate import record, setup
from stele.measuring import variables
from stele.measuring.settings import Settings
from stele.models import arms, spec
from stele_worker import modes
from test_docs import make_trial
from wheels import wheel


@pytest.fixture
def model(tmp_path):
    (tmp_path / "net.py").touch()
    return spec.parse("net.py:build", tmp_path)


@pytest.fixture
def no_keras_file(monkeypatch, tmp_path):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.delenv("KERAS_BACKEND", raising=False)


def loaded(text, model, *requirements):
    return arms.load(text, model, arms.Extras(requirements))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KERAS_BACKEND", "torch"),
        ("XLA_FLAGS", "--xla_cpu_enable_fast_math=true"),
        ("JAX_ENABLE_X64", "1"),
        ("TF_ENABLE_ONEDNN_OPTS", "0"),
        ("TORCHDYNAMO_DISABLE", "1"),
        ("JAX_DISABLE_JIT", "1"),
        ("FLAGS_use_mkldnn", "1"),
        ("MALLOC_ARENA_MAX", "2"),
        ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),
        ("LD_PRELOAD", "libjemalloc.so.2"),
    ],
)
def test_a_variable_that_frameworks_read_is_found(name, value):
    assert variables.deciding({name: value, "HOME": "/root"}) == {name: value}


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "KERAS_API_KEY", "TF_CLI_CONFIG_FILE", "PATH", "HF_HUB_OFFLINE", "STELE_CACHE"]
)
def test_secrets_and_variables_without_effect_are_left_out(name):
    assert variables.deciding({name: "value"}) == {}


def test_the_allocator_that_is_preloaded_is_named():
    assert variables.allocator({"LD_PRELOAD": "/usr/lib/libjemalloc.so.2"}) == "jemalloc"
    assert variables.allocator({}) == "that of the C library"


@pytest.mark.parametrize("backend", ["torch", "jax", "tensorflow"])
def test_keras_runs_on_the_backend_of_the_users_variable(monkeypatch, no_keras_file, model, backend):
    monkeypatch.setenv("KERAS_BACKEND", backend)
    arm = loaded("keras==3.14.1", model)
    package = {"tensorflow": "tensorflow-cpu"}.get(backend, backend)
    assert any(one.startswith(package) for one in arm.requirements)
    assert "KERAS_BACKEND" not in arm.variables  # the worker inherits that of the user


def test_a_backend_that_the_user_names_as_a_package_is_installed_once_and_alone(
    monkeypatch, no_keras_file, model
):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    arm = loaded("keras==3.14.1", model, "torch==2.13.0")
    backends = [
        one for one in arm.requirements if arms.name_of(one).startswith(("torch", "tensorflow", "jax"))
    ]
    assert backends == ["torch==2.13.0"]


def test_keras_runs_on_the_backend_of_the_users_file(no_keras_file, model, tmp_path):
    (tmp_path / "keras.json").write_text('{"backend": "jax"}')
    assert loaded("keras==3.14.1", model).variables["KERAS_BACKEND"] == "jax"


def test_without_a_choice_keras_runs_on_its_default(no_keras_file, model):
    assert loaded("keras==3.14.1", model).variables["KERAS_BACKEND"] == "tensorflow"


def test_an_environment_with_another_backend_than_the_users_is_refused(monkeypatch, no_keras_file, model):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    with pytest.raises(SteleError, match="keras-jax runs Keras on jax, but your backend of Keras is torch"):
        loaded("keras-jax", model)


@pytest.mark.parametrize("text", ["keras-jax@keras==3.14.1", "keras-tensorflow@keras==3.14.1 python==3.11"])
def test_a_pin_of_an_environment_with_another_backend_is_refused(monkeypatch, no_keras_file, model, text):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    with pytest.raises(SteleError, match="but your backend of Keras is torch"):
        loaded(text, model)
    assert loaded(text, None).variables["KERAS_BACKEND"] != "torch"


def test_an_interpreter_for_an_environment_with_another_backend_is_refused(monkeypatch, no_keras_file, model):
    monkeypatch.setattr(environments.pins.probe, "run", Answered)
    assert loaded("keras-jax@/opt/python", model).variables == {"KERAS_BACKEND": "jax"}
    with pytest.raises(SteleError, match="--with adds packages to environments that Stele builds"):
        loaded("keras-jax@/opt/python", model, "einops")
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    with pytest.raises(
        SteleError, match="keras-jax@/opt/python runs Keras on jax, but your backend of Keras"
    ):
        loaded("keras-jax@/opt/python", model)


class Answered:
    """A process of an interpreter that has the framework."""

    stdout = "[true]"

    def __init__(self, *arguments, **options):
        pass

    def check_returncode(self):
        pass


@pytest.mark.parametrize(
    "text", ["torch@torch==2.13.0", "keras-tensorflow@keras==3.14.1", "paddle@paddlepaddle==3.3.1"]
)
def test_a_pin_of_an_environment_gets_what_the_model_and_the_options_add(no_keras_file, tmp_path, text):
    hf = spec.parse("hf-tiny:bert", tmp_path)
    arm = arms.load(text, hf, arms.Extras(("einops<1",), python="3.11"))
    assert {"einops<1", "transformers", text.partition("@")[2], "numpy"} <= {*arm.requirements}
    assert (arm.name, arm.python, arm.on_amd) == (text, "==3.11.*", {})
    assert arm.variables == environments.load(text).variables
    assert environments.load(text).on_amd == arms.load(text, None, arms.Extras()).on_amd


def test_a_variable_of_a_description_gives_way_to_that_of_the_user(monkeypatch, model):
    described = dataclasses.replace(environments.load("torch"), variables={"OMP_WAIT_POLICY": "active"})
    assert arms.as_user_runs(described).variables == {"OMP_WAIT_POLICY": "active"}
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    assert arms.as_user_runs(described).variables == {}


def test_a_model_of_the_user_gets_no_tuning_for_its_processor(model):
    assert environments.load("paddle").on_amd
    assert loaded("paddle", model).on_amd == {}


def typed(**values):
    return argparse.Namespace(**{"model": "net.py:build", "threads": None, "precision": None, **values})


def test_a_model_of_the_user_computes_in_the_default_precision_of_its_framework():
    assert options.conditions_from(typed())["precision"] == "default"
    assert options.conditions_from(typed(precision="bf16"))["precision"] == "bf16"
    assert options.conditions_from(typed(model=None))["precision"] == "fp32"


@pytest.mark.parametrize(
    ("own", "threads", "expected"), [("3", None, 3), ("3", 1, 1), ("64", None, 3), ("a", None, 1)]
)
def test_the_users_number_of_threads_is_used_as_far_as_there_are_processors(
    monkeypatch, own, threads, expected
):
    monkeypatch.setattr("stele.measuring.processors.count", lambda: 4)
    monkeypatch.setenv("OMP_NUM_THREADS", own)
    assert options.threads_from(typed(threads=threads)) == expected
    assert options.threads_from(typed(model=None)) == 1


def test_the_allocator_is_that_of_the_c_library_by_default():
    command = argparse.ArgumentParser()
    options.add_process_options(command)
    assert command.parse_args([]).malloc == "plain"


def test_no_library_is_told_its_precision_if_it_is_the_frameworks():
    settings = Settings(device="cuda", precision="default")
    assert "NVIDIA_TF32_OVERRIDE" not in settings.variables()
    assert settings.arithmetic == "tf32"
    assert Settings(device="cpu", precision="default").arithmetic == "fp32"


def test_a_framework_may_ignore_the_first_mode_only_in_a_model_of_the_user():
    module = argparse.Namespace(MODES=("jit", "eager"))
    assert modes.resolve("jax", module, {"tuned": False})["mode"] == "jit"
    assert modes.check("jit", {"compilations": 0}, False) == {"compilations": 0}
    for settings in ({"tuned": True}, {"tuned": False, "mode": "jit"}):
        modes.resolve("jax", module, settings)
        with pytest.raises(RuntimeError, match="ignored mode 'jit'"):
            modes.check("jit", {"compilations": 0}, False)


def answer(version, **flags):
    return {"versions": {"torch": version}, "flags": {"device": "cpu", "processors": [0], **flags}}


def test_one_line_says_what_was_found_and_what_is_changed(monkeypatch, model):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    named = Difference("transformers", "4.57.3", "5.0.0"), Difference("torch", "2.12.0", "2.13.0")
    trial = dataclasses.replace(make_trial(), model=model, named=named)
    line = setup.line(trial, answer("2.12.0", onednn=True), answer("2.13.0", onednn=False))
    assert "\n" not in line
    for part in (
        "as you run it: transformers 4.57.3 → 5.0.0, torch 2.12.0 → 2.13.0 on cpu",
        "allocator: that of the C library",
        "flags: onednn=True → False",
        "KERAS_BACKEND=torch",
        "Stele sets: 1 thread on as many processors, seed 0, PYTHONHASHSEED=0, empty caches of compilers, a TMPDIR",
    ):
        assert part in line


@pytest.mark.parametrize(("new", "said"), [("torch", "torch"), ("jax", "torch → jax")])
def test_the_backend_of_keras_is_said_although_no_variable_names_it(monkeypatch, model, new, said):
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    trial = dataclasses.replace(make_trial(), model=model)
    line = setup.line(trial, answer("2.12.0", backend="torch"), answer("2.13.0", backend=new))
    assert f"; flags: backend={said}" in line and "KERAS_BACKEND" not in line


@pytest.mark.parametrize("installed", ["2.15.0", None])
def test_what_only_one_worker_reports_is_the_package_of_the_other_arm_or_left_out(model, installed):
    found = [Difference("keras", installed, "3.15.1")] if installed else []
    trial = dataclasses.replace(make_trial(), model=model, differences=tuple(found))
    old, new = answer("2.15.1", onednn=True), answer("2.16.2", onednn=True, dtype_policy="float32")
    new["versions"]["keras"] = "3.15.1"
    line = setup.line(trial, old, new)
    assert ("torch 2.15.1 → 2.16.2, keras 2.15.0 → 3.15.1 on cpu;" in line) is (installed is not None)
    assert "; flags: onednn=True;" in line or "; flags: onednn=True." in line
    assert "None" not in line


def test_a_model_of_tensorflow_is_said_to_run_in_a_function(model):
    trial = dataclasses.replace(make_trial(), model=model)
    for framework, said in (("tensorflow", True), ("torch", False)):
        old = dataclasses.replace(trial.old, framework=framework)
        line = setup.line(dataclasses.replace(trial, old=old), answer("2.12.0"), answer("2.13.0"))
        assert ("; in a tf.function;" in line or "; in a tf.function." in line) is said


@pytest.mark.parametrize(("own", "said"), [("4", True), ("1", False), (None, False)])
def test_another_number_of_threads_than_the_users_is_said(monkeypatch, own, said):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if own is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", own)
    trial = dataclasses.replace(make_trial(), settings=Settings(device="cpu", threads=1))
    found = list(setup.changes(trial))
    assert ("OMP_NUM_THREADS=1 in place of your 4" in found) is said


def test_a_built_in_task_is_said_to_be_tuned():
    assert "conditions, tuned by Stele: torch 2.13.0 on cpu" in setup.line(
        make_trial(), answer("2.13.0"), answer("2.13.0")
    )


def test_only_of_a_built_in_task_is_garbage_collected_between_the_steps(model):
    said = "garbage collection between the steps, not timed"
    trial = make_trial()
    assert said in setup.line(trial, answer("2.13.0"), answer("2.13.0"))
    own = dataclasses.replace(trial, model=model)
    assert "garbage" not in setup.line(own, answer("2.13.0"), answer("2.13.0"))


def test_an_allocator_that_reduces_noise_is_listed():
    trial = dataclasses.replace(make_trial(), settings=Settings(device="cpu", threads=2, malloc="steady"))
    assert "an allocator that keeps freed memory (--malloc steady)" in setup.line(
        trial, answer("1"), answer("1")
    )


@pytest.fixture
def asked(monkeypatch):
    """The settings of each ``configure``."""
    requests = []
    from stele.measuring.worker import Worker

    original = Worker.ask

    def ask(worker, verb, **fields):
        if verb == "configure":
            requests.append(fields["settings"])
        return original(worker, verb, **fields)

    monkeypatch.setattr(Worker, "ask", ask)
    return requests


def test_a_model_of_the_user_is_measured_without_tuning(
    add_environment, tmp_path, monkeypatch, capsys, asked
):
    from stele import __main__ as entry_point
    from test_gate_model import INSPECTION, NUMBERS, SECONDS

    monkeypatch.setenv("JAX_DISABLE_JIT", "1")
    (tmp_path / "net.py").touch()
    for name in ("old", "new"):
        add_environment(name, seconds=SECONDS, numbers=NUMBERS, inspection=INSPECTION)
    entry_point.main(["gate", "old", "new", "--model", "net.py:build", "--metric=parity", "--phase=infer"])
    before, _, _ = capsys.readouterr().err.partition("parity: OLD")
    [line] = [one for one in before.splitlines() if one.startswith("conditions, as you run it")]
    own = line.partition("your variables: ")[2].partition(". Stele sets")[0]
    assert "JAX_DISABLE_JIT=1" in own.split()
    assert len(asked) >= 4
    assert not any(one["tuned"] for one in asked), json.dumps(asked)


@pytest.mark.parametrize("own", [{}, {"MALLOC_ARENA_MAX": "2"}], ids=["none", "the user's own"])
def test_a_model_of_the_user_is_measured_with_the_allocator_as_it_is(
    add_environment, tmp_path, monkeypatch, own
):
    from stele import __main__ as entry_point
    from test_gate_model import INSPECTION, SECONDS

    def of_allocator(variables):
        return {name: variables[name] for name in variables if name.startswith(("MALLOC_", "GLIBC_"))}

    for name in of_allocator(os.environ):
        monkeypatch.delenv(name)
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    seen, popen = [], subprocess.Popen

    def started(command, **options):
        seen.append(options.get("env") or {})
        return popen(command, **options)

    monkeypatch.setattr(subprocess, "Popen", started)
    (tmp_path / "net.py").touch()
    for name in ("old", "new"):
        add_environment(name, seconds=SECONDS, inspection=INSPECTION)
    options = ["--metric=step,host-memory", "--phase=infer", "--budget=60s"]
    assert entry_point.main(["gate", "old", "new", "--model", "net.py:build", *options]) == 0
    [path] = Path(".stele/gates").glob("*.jsonl")
    runs = [run for one in record.read(path).entries() for run in (one.get("runs") or {}).values()]
    assert {run["settings"]["malloc"] for run in runs} == {"plain"}
    workers = [of_allocator(variables) for variables in seen if "SCRIPT" in variables]
    assert len(workers) > len(runs) > 0 and all(variables == own for variables in workers)


@pytest.mark.parametrize("text", ["toy==1 layers==2", "kernels-1.5-py3-none-any.whl", "requirements.txt"])
def test_every_form_of_an_arm_gets_what_the_options_add(model, tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    wheel(tmp_path, "kernels", "1.5")
    (tmp_path / "requirements.txt").write_text("toy==1\n")
    arm = arms.load(text, model, arms.Extras(("einops<1",), python="3.11"))
    assert "einops<1" in arm.requirements
    assert arm.python == "==3.11.*"


def test_the_packages_of_a_project_are_those_of_with(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\nversion = "1"\ndependencies = ["toy<3"]\n'
    )
    given = {"requirements": ["einops"], "with_project": tmp_path, "extras": []}
    found = options.parse_extras(argparse.Namespace(**given, python="3.11", allow_vcs=False))
    assert (found.requirements, found.python) == (("einops", "toy<3"), "3.11")


def test_the_index_of_a_project_is_that_of_both_arms(tmp_path, model):
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\nversion = "1"\ndependencies = ["toy<3"]\n'
        "[[tool.uv.index]]\nname = 'a'\nurl = 'https://example.org/simple'\n"
    )
    given = {"requirements": [], "with_project": tmp_path, "extras": []}
    found = options.parse_extras(argparse.Namespace(**given, python=None, allow_vcs=False))
    arm = arms.load("layers==1", model, found)
    assert arm.options == ("--extra-index-url https://example.org/simple",) and "toy<3" in arm.requirements


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("onnxruntime-gpu==1.20.0", "onnxruntime"),
        ("paddlepaddle-gpu==3.0.0", "paddlepaddle"),
        ("tensorflow==2.18.0", "tensorflow-cpu"),
    ],
)
def test_an_arm_has_no_second_package_of_its_framework(text, other):
    arm = arms.load(text, None, arms.Extras())
    names = {arms.name_of(one) for one in arm.requirements}
    assert arms.name_of(text) in names and other not in names
