"""The inputs of a user's model: what the host may send, and the seeded batches that follow from it."""

import numpy
import pytest

from stele_worker import tasks, verbs
from stele_worker.models import inputs, task
from stele_worker.models.errors import SpecError
from stele_worker.models.inputs import Input

X = Input("x", "float", (4, 3))
IDS = Input("ids", "int", (4, 8), 100)
MASK = Input("attention_mask", "mask", (4, 8))
MODEL = {"spec": "m:build", "folder": "/", "optimizer": None}


def make(*given, target=None, scale="smoke", **changes):
    return task.make(MODEL, given, target, scale, **changes)


def test_inputs_survive_the_way_to_the_host_and_back():
    assert inputs.parse([inputs.as_dict(each) for each in (X, IDS, MASK)]) == (X, IDS, MASK)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"kind": "long", "shape": [4]}, "'long' is not a kind of input; there are float, int, mask"),
        ({"kind": "float", "shape": []}, "is not a list of positive sizes"),
        ({"kind": "float", "shape": [4, 0]}, r"\[4, 0\] is not a list of positive sizes"),
        ({"kind": "float", "shape": ["4"]}, "is not a list of positive sizes"),
        ({"kind": "int", "shape": [4], "high": 1}, "at least 2 values, not 1"),
    ],
)
def test_an_unusable_input_is_refused(value, message):
    with pytest.raises(SpecError, match=message):
        inputs.parse([value])


@pytest.mark.parametrize(
    ("each", "text"),
    [
        (Input(None, "float", (8, 3, 64, 64)), "8x3x64x64"),
        (IDS, "ids=int:4x8:100"),
        (MASK, "attention_mask=mask:4x8"),
        (Input(None, "int", (4, 8)), "int:4x8"),
    ],
)
def test_an_input_is_shown_as_the_command_line_has_it(each, text):
    assert inputs.option(each) == text


def test_whole_numbers_have_as_many_values_as_the_embedding():
    unknown = IDS._replace(high=None)
    assert inputs.complete((X, unknown), 50) == (X, IDS._replace(high=50))
    with pytest.raises(SpecError, match="Add it, for example: --input ids=int:4x8:1000"):
        inputs.complete((X, unknown), None)


def test_example_inputs_give_names_kinds_and_shapes():
    examples = {
        "x": numpy.zeros((2, 3)),
        "ids": numpy.array([[1, 41]]),
        "mask": numpy.ones((2, 4), int),
        "keep": numpy.ones((2, 4), bool),
    }
    assert inputs.from_examples(examples) == (
        Input("x", "float", (2, 3)),
        Input("ids", "int", (1, 2), 42),
        Input("mask", "mask", (2, 4)),
        Input("keep", "mask", (2, 4)),
    )
    assert inputs.from_examples(numpy.zeros((2, 3))) == (Input(None, "float", (2, 3)),)
    assert inputs.from_examples((numpy.zeros(2), numpy.zeros(3)))[1].shape == (3,)


@pytest.mark.parametrize("examples", [3, None, numpy.float32(3), ["text"]])
def test_examples_that_are_no_arrays_are_refused(examples):
    with pytest.raises(SpecError, match=r"example_inputs\(\) returned .*; arrays or tensors are needed"):
        inputs.from_examples(examples)


def test_batches_are_seeded():
    first, second = (task.example(make(X, IDS, seed=3), 4) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        numpy.testing.assert_array_equal(one, other)
    assert (task.example(make(X, seed=4), 4)[0] != first[0]).any()


def test_batches_have_the_kinds_of_their_inputs():
    x, ids, mask, labels = task.example(make(X, IDS, MASK, target=Input(None, "int", (4,), 5)), 8)
    assert [each.dtype.name for each in (x, ids, mask, labels)] == ["float32", "int32", "int32", "int32"]
    assert [each.shape for each in (x, ids, mask, labels)] == [(8, 3), (8, 8), (8, 8), (8,)]
    assert ids.min() >= 1 and ids.max() < 100
    assert mask.sum(1).tolist() == [8, 6] * 4
    assert labels.min() >= 0 and labels.max() < 5


@pytest.mark.parametrize("seed", range(20))
def test_labels_are_not_all_equal(seed):
    labels = inputs.labels(Input(None, "int", (2,), 2), 2, numpy.random.RandomState(seed))
    assert set(labels) == {0, 1}


def test_a_long_run_repeats_eight_batches():
    paper = make(X, scale="paper")
    (x,) = task.example(paper, paper.train)
    assert x.shape == (32, 3)
    rows = task.rows(paper, "train")
    assert rows.shape == (500, 4)
    assert rows.max() == 31
    numpy.testing.assert_array_equal(rows[0], rows[8])
    assert task.rows(paper, "test").shape == (200, 4)


@pytest.mark.parametrize(("scale", "batches"), [("smoke", (10, 5)), ("gate", (50, 50)), ("quick", (100, 50))])
def test_scales_are_numbers_of_batches(scale, batches):
    made = make(X, scale=scale)
    assert (made.train, made.test) == (4 * batches[0], 4 * batches[1])


def test_inputs_of_different_batches_are_refused():
    with pytest.raises(SpecError, match="the batch, but x has 4 and h has 1"):
        make(X, Input("h", "float", (1, 3)))


def test_dropout_is_as_the_model_has_it_unless_parity_compares():
    assert not task.without_dropout(make(X))
    assert task.without_dropout(tasks.without_dropout(make(X)))


def test_parity_asks_for_a_scale_that_models_of_users_have(monkeypatch):
    asked = []
    monkeypatch.setattr(
        verbs, "framework_and_subject", lambda task, scale, *rest: asked.append(scale) or ("", "")
    )
    monkeypatch.setattr(verbs.agreement, "check", lambda *arguments: {})
    for model in (None, MODEL):
        verbs.parity(None, "gru", "train", 0, model=model)
    assert asked[0] == "parity" and asked[1] in task.BATCHES
