"""The conditions of a gate: a user's model runs as the user runs it, and what Stele changes is said first."""

import dataclasses

import pytest

from stele.environments.packages import Difference
from stele.gate import setup
from stele.measuring.run import Framework
from stele.measuring.settings import Settings
from stele.subjects.model import spec
from tests.support.gates import make_trial


@pytest.fixture
def model(tmp_path):
    (tmp_path / "net.py").touch()
    return spec.parse("net.py:build", tmp_path)


def answer(version, **flags):
    found = {"device": "cpu", "processors": [0], **flags}
    return Framework(import_seconds=1.0, versions={"torch": version}, flags=found)


def test_one_line_says_what_was_found_and_what_is_changed(monkeypatch, model):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    named = Difference("transformers", "4.57.3", "5.0.0"), Difference("torch", "2.12.0", "2.13.0")
    trial = dataclasses.replace(make_trial(), subject=model, named=named)
    line = setup.line(trial, answer("2.12.0", onednn=True), answer("2.13.0", onednn=False))
    assert "\n" not in line
    for part in (
        "as you run it: transformers 4.57.3 → 5.0.0, torch 2.12.0 → 2.13.0 on cpu",
        "allocator: that of the C library",
        "flags: onednn=True → False",
        "KERAS_BACKEND=torch",
        "Stele sets: 1 thread on as many processors, imports and first steps side by side, seed 0, PYTHONHASHSEED=0, "
        "empty caches of compilers, a TMPDIR",
    ):
        assert part in line


@pytest.mark.parametrize(("new", "said"), [("torch", "torch"), ("jax", "torch → jax")])
def test_the_backend_of_keras_is_said_although_no_variable_names_it(monkeypatch, model, new, said):
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    trial = dataclasses.replace(make_trial(), subject=model)
    line = setup.line(trial, answer("2.12.0", backend="torch"), answer("2.13.0", backend=new))
    assert f"; flags: backend={said}" in line and "KERAS_BACKEND" not in line


@pytest.mark.parametrize("installed", ["2.15.0", None])
def test_what_only_one_worker_reports_is_the_package_of_the_other_arm_or_left_out(model, installed):
    found = [Difference("keras", installed, "3.15.1")] if installed else []
    trial = dataclasses.replace(make_trial(), subject=model, differences=tuple(found))
    old, new = answer("2.15.1", onednn=True), answer("2.16.2", onednn=True, dtype_policy="float32")
    new.versions["keras"] = "3.15.1"
    line = setup.line(trial, old, new)
    assert ("torch 2.15.1 → 2.16.2, keras 2.15.0 → 3.15.1 on cpu;" in line) is (installed is not None)
    assert "; flags: onednn=True;" in line or "; flags: onednn=True." in line
    assert "None" not in line


def test_a_model_of_tensorflow_is_said_to_run_in_a_function(model):
    trial = dataclasses.replace(make_trial(), subject=model)
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
    assert "tuned by Stele: torch 2.13.0 on cpu" in setup.line(make_trial(), answer("2.13.0"), answer("2.13.0"))


def test_only_of_a_built_in_task_is_garbage_collected_between_the_steps(model):
    said = "garbage collection between the steps, not timed"
    trial = make_trial()
    assert said in setup.line(trial, answer("2.13.0"), answer("2.13.0"))
    own = dataclasses.replace(trial, subject=model)
    assert "garbage" not in setup.line(own, answer("2.13.0"), answer("2.13.0"))


def test_an_allocator_that_reduces_noise_is_listed():
    trial = dataclasses.replace(make_trial(), settings=Settings(device="cpu", threads=2, malloc="steady"))
    assert "an allocator that keeps freed memory (--malloc steady)" in setup.line(trial, answer("1"), answer("1"))
