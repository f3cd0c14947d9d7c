"""The golden numbers agree with the oracle, and are rejected when they are out of date."""

import re

import pytest

from stele.errors import SteleError
from stele.parity import golden_numbers, ladder
from stele_worker import agreement, frameworks, recipes, tasks
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


def test_golden_numbers_are_saved_with_one_line_for_each_kind(tmp_path):
    numbers = {"task": "t", "logits": [[0.1, 1 / 3]], "loss": 2.302585092994, "repeats": True}
    path = golden_numbers.save("cnn", None, numbers, tmp_path)
    expected = {"task": "t", "logits": [[0.1, 0.3333333]], "loss": 2.302585}
    norms = golden_numbers.norms("cnn", None)
    assert golden_numbers.load("cnn", folder=tmp_path) == {**expected, "norms": norms}
    assert len(path.read_text().splitlines()) == 3 + len(expected)


def test_golden_numbers_have_the_digits_that_the_ladder_compares(tmp_path, monkeypatch):
    monkeypatch.setattr(golden_numbers, "norms", lambda task, form: {"w": 1.0, "b": 1.0})
    numbers = trained(gradients={"w": [0.123456789, -0.000123456789, 1e-9], "b": [0.0, 0.0, 0.0]})
    golden_numbers.save("cnn", None, numbers, tmp_path)
    stored = golden_numbers.load("cnn", folder=tmp_path)
    assert stored["gradients"] == {"w": [0.12346, -0.00012, 0.0], "b": [0.0, 0.0, 0.0]}


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


def test_a_file_has_the_name_of_a_parameter_once(tmp_path, monkeypatch):
    monkeypatch.setattr(golden_numbers, "norms", lambda task, form: {"w": 1.0, "b": 1.0})
    path = golden_numbers.save("cnn", None, trained(), tmp_path)
    assert path.read_text().count('"w"') == 1
    loaded = golden_numbers.load("cnn", folder=tmp_path)
    assert {kind: loaded[kind] for kind in trained()} == trained()


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"parameters": {"w": [[1, 0]]}}, "'w' has 1 sketches, expected 2"),
        ({"parameters": {"w": [[1, 0], 2]}}, "expected a list"),
        ({"parameters": {"w": [[1, 0], []]}}, "[] is no sketch"),
        ({"parameters": {"w": [[1, 0], [2, 10**9]]}}, "[2, 1000000000] is no sketch"),
        ({"parameters": {"w": [[1, 0], [0.5, 0]]}}, "expected a whole number"),
        ({"parameters": 3}, "expected an object"),
        ({"layers": {"conv1": [1.5, 0]}}, "expected a whole number"),
        ({"steps": ["1", 10]}, "expected text"),
        ({"steps": None}, "expected a list"),
    ],
)
def test_a_file_with_sketches_of_another_form_is_refused(changes, message):
    content = {"task": "t", "steps": ["1"], "parameters": {"w": [[1, 0], [2, 0]]}, **changes}
    with pytest.raises(ValueError, match=re.escape(message)):
        golden_numbers.by_kind(content)


@pytest.mark.parametrize(
    "sketch, stored",
    [
        ([0.25, -1.5, 0.0], [2500, -15000, 0, 4]),
        ([1234567.0, -89.0, 0.0], [12346, -1, 0, -2]),
        ([1.23456e-9, 0.0, 4e-12], [12346, 0, 40, 13]),
        ([0.0, 0.0, 0.0], [0, 0, 0, 0]),
    ],
)
def test_a_sketch_is_stored_as_whole_numbers(sketch, stored):
    assert golden_numbers.to_integers(sketch, 5) == stored
    assert golden_numbers.to_floats(stored) == pytest.approx(
        sketch, rel=1e-4, abs=1e-4 * max(map(abs, sketch))
    )


def test_long_rows_of_logits_are_sampled_and_still_compared(tmp_path):
    row = [number / 7 for number in range(500)]
    golden_numbers.save("cnn", None, {"task": "t", "logits": [row, row]}, tmp_path)
    golden = golden_numbers.load("cnn", folder=tmp_path)
    assert [len(stored) for stored in golden["logits"]] == [125, 125]

    def judge(logits):
        return ladder.logits(3, 1e-5, {"logits": logits}, golden).status

    assert judge([row, row]) == "agrees"
    changed = [*row[:4], row[4] * 1.01, *row[5:]]
    assert [judge([row, changed]), judge([row[:-4], row]), judge(row), judge(None)] == ["differs"] * 4


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
    assert golden_numbers.load(task)["loss"] == pytest.approx(golden_numbers.numpy.log(classes), rel=0.1)
