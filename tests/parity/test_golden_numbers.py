"""The golden numbers agree with the oracle, and are rejected when they are out of date."""

import re

import numpy
import pytest

from stele.errors import SteleError
from stele.parity import golden_numbers, ladder
from stele_suite import tasks
from stele_worker import agreement, frameworks, recipes
from stele_worker.subjects import TaskSubject

NUMPY = frameworks.load("numpy")


def subject(task, **changes):
    made = tasks.make(task, "parity", **{"seed": golden_numbers.seed(task), **changes})
    return TaskSubject(made, recipes.load(task, "numpy"))


def differences(task, numbers):
    findings = ladder.compare(numbers, golden_numbers.load(task), task=task, precision="fp32")
    return [ladder.message(finding) for finding in findings if finding.status == "differs"]


@pytest.mark.parametrize("task", ["cnn", "gru"])
def test_the_oracle_agrees_with_the_golden_logits(task):
    assert differences(task, agreement.check(NUMPY, subject(task), "infer")) == []


@pytest.mark.slow
@pytest.mark.parametrize(("task", "form"), [*((task, None) for task in tasks.NAMES), ("gru", "one-bias")])
def test_the_golden_numbers_of_every_task_are_up_to_date(task, form):
    made = subject(task) if form is None else subject(task, form=form)
    found = agreement.fingerprint(made.task, made.weights(), made.parity_batch())
    assert found == golden_numbers.load(task, form)["task"], (
        f"regenerate them with: stele parity --rebase --task {task}"
    )


def test_golden_numbers_of_a_changed_task_are_out_of_date():
    numbers = agreement.check(NUMPY, subject("gru", epsilon=1e-7), "infer")
    with pytest.raises(SteleError, match="out of date because the task changed.* stele parity --rebase"):
        differences("gru", numbers)


def test_golden_numbers_do_not_depend_on_scale_and_precision():
    task = tasks.make("gru", "parity")
    weights, (x, y) = tasks.weights(task), tasks.load("gru").example(task, 2)
    prints = {
        agreement.fingerprint(tasks.make("gru", scale, dtype=dtype), weights, (x, y))
        for scale in tasks.SCALES
        for dtype in ("float32", "bfloat16")
    }
    assert len(prints) == 1


def test_missing_golden_numbers_are_an_error_with_the_command_that_creates_them(tmp_path):
    with pytest.raises(SteleError, match="stele parity --rebase"):
        golden_numbers.load("cnn", folder=tmp_path)


def test_golden_numbers_are_saved_exactly(tmp_path, monkeypatch):
    monkeypatch.setattr(golden_numbers, "norms", lambda task, form: {"w": 1.0, "b": 1.0})
    numbers = trained(loss=2.302585092994, repeats=True)
    golden_numbers.save("cnn", None, numbers, tmp_path)
    del numbers["repeats"]
    assert golden_numbers.load("cnn", folder=tmp_path) == {**numbers, "norms": {"w": 1.0, "b": 1.0}}


def trained(**changes):
    updates = {
        "1": {"w": [1.0, 0.0, 1.0], "b": [0.5, 0.5, 0.0]},
        "10": {"w": [9.0, 8.0, 7.0], "b": [3.0, 2.0, 1.0]},
    }
    gradients = {"w": [0.25, 0.0, 0.25], "b": [0.125, 0.0, 0.0]}
    return {
        "task": "t",
        "logits": [[0.5]],
        "gradients": gradients,
        "updates": updates,
        "losses": [2.0],
        **changes,
    }


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"logits": [[0.5]]}, "missing required field `task`"),
        ({"task": "t", "layers": [1.0]}, "it has no name in 'layers'"),
        ({"task": "t", "updates/w": [1.0]}, "it has no name in 'updates/w'"),
        ({"task": "t", "layers/a": [[1.0]]}, "Expected `float`, got `array`"),
        ({"task": "t", "loss": "low"}, "Expected `float`, got `str`"),
        ({"task": "t", "logits": []}, "it has no logits"),
        ({"task": "t", "gradients/w": numpy.array({}, object)}, "pickle"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path, arrays, message):
    numpy.savez(tmp_path / "cnn.npz", **arrays)
    with pytest.raises(SteleError, match=re.escape(message)):
        golden_numbers.load("cnn", folder=tmp_path)


@pytest.mark.parametrize("content", [b"", b"PK", b"{}", b"x" * 300])
def test_a_file_that_has_no_arrays_is_refused(tmp_path, content):
    (tmp_path / "cnn.npz").write_bytes(content)
    with pytest.raises(SteleError, match="stele parity --rebase"):
        golden_numbers.load("cnn", folder=tmp_path)


CLASSES = {
    "cnn": 10,
    "gru": 2,
    "resnet50": 1000,
    "mobilenetv2": 1000,
    "transformer": 500,
    "encoder": 2,
    "decoder": 500,
}


@pytest.mark.parametrize("task, classes", CLASSES.items())
def test_the_loss_of_initial_weights_is_that_of_a_random_guess(task, classes):
    """The logarithm of the number of classes, up to the effect of the seeded weights."""
    assert golden_numbers.load(task)["loss"] == pytest.approx(numpy.log(classes), rel=0.1)
