"""The golden numbers hold against the oracle, and say when they are stale."""

import pytest

from stele.errors import SteleError
from stele.parity import golden_numbers, ladder
from stele_worker import agreement, frameworks, tasks

NUMPY = frameworks.load("numpy")


def subject(task, **changes):
    return tasks.make(task, "paper", **{"seed": golden_numbers.SEEDS[task], **changes})


def broken(task, numbers):
    found = ladder.compare(numbers, golden_numbers.load(task), task=task, precision="fp32")
    return [ladder.message(finding) for finding in found if finding.status == "differs"]


@pytest.mark.parametrize("task", ["cnn", "gru"])
def test_the_oracle_agrees_with_the_golden_logits(task):
    assert broken(task, agreement.check(NUMPY, subject(task), "infer")) == []


def test_a_changed_task_makes_the_golden_numbers_stale():
    numbers = agreement.check(NUMPY, subject("gru", epsilon=1e-7), "infer")
    with pytest.raises(SteleError, match="stale.* stele parity --rebase"):
        broken("gru", numbers)


def test_scale_and_precision_do_not_make_the_golden_numbers_stale():
    weights = tasks.load("gru").weights(0)
    x, y = tasks.load("gru").example(2, 0)
    prints = {
        agreement.fingerprint(tasks.make("gru", scale, dtype=dtype), weights, x, y)
        for scale in tasks.SCALES
        for dtype in ("float32", "bfloat16")
    }
    assert len(prints) == 1


def test_golden_numbers_that_were_never_made_are_an_error_that_says_how(tmp_path):
    with pytest.raises(SteleError, match="stele parity --rebase"):
        golden_numbers.load("cnn", folder=tmp_path)


def test_golden_numbers_survive_as_a_file_of_a_line_for_each_kind(tmp_path):
    numbers = {"task": "t", "logits": [[0.1, 1 / 3]], "loss": 2.302585092994, "repeats": True}
    path = golden_numbers.save("cnn", None, numbers, tmp_path)
    kept = {"task": "t", "logits": [[0.1, 0.333333333]], "loss": 2.30258509}
    assert golden_numbers.load("cnn", folder=tmp_path) == kept
    assert len(path.read_text().splitlines()) == 3 + len(kept)


@pytest.mark.parametrize("task", ["cnn", "gru", "resnet50"])
def test_the_loss_at_the_start_is_that_of_a_guess(task):
    """ln 10, ln 2 or ln 1000, within what seeded weights add."""
    classes = {"cnn": 10, "gru": 2, "resnet50": 1000}[task]
    assert golden_numbers.load(task)["loss"] == pytest.approx(golden_numbers.numpy.log(classes), rel=0.1)
