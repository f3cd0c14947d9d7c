"""The inputs of a user's model: what the host may send, and the seeded batches that follow from it."""

import numpy
import pytest

from stele_suite import tasks
from stele_worker import verbs
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
    given, values = inputs.from_examples(examples)
    assert given == (
        Input("x", "float", (2, 3), None, "float64"),
        Input("ids", "int", (1, 2), 42, "int64"),
        Input("mask", "mask", (2, 4), None, "int64"),
        Input("keep", "mask", (2, 4), None, "bool"),
    )
    assert {name: array.dtype.name for name, array in values.items()} == {each.name: each.dtype for each in given}
    assert inputs.from_examples(numpy.zeros((2, 3)))[0] == (Input(None, "float", (2, 3), None, "float64"),)
    given, values = inputs.from_examples((numpy.zeros(2), numpy.ones(3)))
    assert given[1].shape == (3,)
    assert values["input 2"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(("double", "dtype"), [(True, "float64"), (False, "float32")])
def test_doubles_of_numpy_stay_only_where_a_framework_computes_in_them(double, dtype):
    [given], values = inputs.from_examples(numpy.full((2, 3), 0.5), double)
    assert (given.dtype, values["input 1"].dtype.name) == (dtype, dtype)


class Tensor:
    """A tensor of a framework with a dtype that NumPy lacks."""

    dtype, shape = "torch.bfloat16", (2, 1)

    def float(self):
        return numpy.array([[1.5], [-2.0]], "float32")


def test_bfloat16_is_kept_without_a_dtype_of_numpy(tmp_path):
    [given], values = inputs.from_examples(Tensor())
    assert given == Input(None, "float", (2, 1), None, "bfloat16")
    numpy.savez(tmp_path / "values.npz", **values)
    with numpy.load(tmp_path / "values.npz", allow_pickle=False) as read:
        assert inputs.numbers_of(read["input 1"]).tolist() == [[1.5], [-2.0]]


@pytest.mark.parametrize(
    ("values", "alone"),
    [
        ({"x": numpy.zeros((2, 3)), "ids": numpy.full((2, 4), 49)}, True),
        ({"ids": numpy.array([[1, 2]]), "token_type_ids": numpy.zeros((1, 2), int)}, False),
        ({"x": inputs.narrow(numpy.ones((2, 2)))}, True),
    ],
)
def test_arrays_of_equal_numbers_show_shapes_alone(values, alone):
    assert inputs.show_shapes_alone(values) is alone


@pytest.mark.parametrize("dtype", ["float16", "float64", "int64", "bool"])
def test_numbers_are_drawn_in_the_dtype_of_the_user(dtype):
    kind = {"f": "float", "i": "int", "b": "mask"}[dtype[0]]
    each = Input("x", kind, (2, 4), 5, dtype)
    assert inputs.sample(each, 2, numpy.random.RandomState(0)).dtype == dtype


VALUES = {"ids": numpy.array([[0, 7], [3, 0]]), "labels": numpy.array([1, 0])}


def test_the_values_of_the_user_are_the_batch():
    given = Input("ids", "int", (2, 2), 8, "int64")
    made = make(given, target=Input("labels", "int", (2,), 5), values=VALUES)
    ids, labels = task.example(made, made.train)
    numpy.testing.assert_array_equal(ids, VALUES["ids"])
    numpy.testing.assert_array_equal(labels, VALUES["labels"])
    assert task.rows(made, "train").tolist() == [[0, 1]] * 10


def test_the_target_is_drawn_where_the_user_gives_none():
    made = make(Input("ids", "int", (2, 2), 8), target=Input(None, "int", (2,), 5), values=VALUES)
    ids, labels = task.example(made, made.train)
    assert (len(ids), len(labels)) == (2, 2)
    assert labels.max() < 5


@pytest.mark.parametrize(("batch", "ids"), [(1, [[0, 7]]), (3, [[0, 7], [3, 0], [0, 7]])])
def test_another_batch_repeats_the_values_of_the_user(batch, ids):
    made = task.with_batch(make(Input("ids", "int", (2, 2), 8), values=VALUES), batch)
    assert task.example(made, batch)[0].tolist() == ids


X32 = X._replace(dtype="float32")


@pytest.mark.parametrize(
    ("own", "same"),
    [
        ((X32, IDS), True),
        ((IDS, X32), True),
        ((X32, IDS._replace(high=7)), True),
        ((X32, IDS, Input("labels", "int", (4,), 3)), True),
        ((X32._replace(dtype="float64"), IDS), False),
        ((X32, IDS._replace(shape=(4, 9))), False),
        ((X32,), False),
    ],
)
def test_inputs_of_an_arm_are_those_of_the_inspection_but_for_their_largest_number(own, same):
    assert (inputs.difference((X32, IDS), own) is None) is same


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
    assert ids.min() >= 0 and ids.max() < 100
    assert mask.sum(1).tolist() == [8, 6] * 4
    assert labels.min() >= 0 and labels.max() < 5


@pytest.mark.parametrize("seed", range(20))
def test_labels_are_not_all_equal(seed):
    labels = inputs.sample(Input(None, "int", (2,), 2), 2, numpy.random.RandomState(seed))
    assert set(labels) == {0, 1}


@pytest.mark.parametrize("high", [2, 3, 10])
def test_whole_numbers_have_every_value_from_zero_on(high):
    values = inputs.sample(Input(None, "int", (8, 64), high), 8, numpy.random.RandomState(0))
    assert set(values.reshape(-1)) == set(range(high))


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
    monkeypatch.setattr(verbs, "framework_and_subject", lambda task, scale, *rest: asked.append(scale) or ("", ""))
    monkeypatch.setattr(verbs.agreement, "check", lambda *arguments: {})
    for model in (None, MODEL):
        verbs.parity(None, "gru", "train", 0, model=model)
    assert asked[0] == "parity" and asked[1] in task.BATCHES


def of(*numbers, dtype="float32"):
    return numpy.array(numbers, dtype)


STAMP, HASH = 1.7e9, 2**61
EPSILON = 2.0**-23


@pytest.mark.parametrize(
    ("array", "expected", "places"),
    [
        (of(1, numpy.nan, 3), of(1, numpy.nan, 3), []),
        (of(1.5, numpy.nan, 3), of(1, numpy.nan, 3), [0]),
        (of(1, 2), of(1, numpy.nan), [1]),
        (of(1, numpy.nan), of(1, 2), [1]),
        (of(numpy.inf, -numpy.inf), of(numpy.inf, -numpy.inf), []),
        (of(numpy.inf, 1), of(-numpy.inf, numpy.inf), [0, 1]),
        (of(3, 3), of(3, numpy.inf), [1]),
        (of(STAMP, 0.25), of(STAMP, 0.75), [1]),  # a large number hides no small one
        (of(1 + 4 * EPSILON, 1e-6), of(1, 1e-6 * (1 + 4 * EPSILON)), []),
        (of(1, 1e-6), of(1, 1e-6 * (1 + 1e-5)), [1]),
        (of(0.0), of(-0.0), []),
        (of(1 + 1e-12, dtype="float64"), of(1, dtype="float64"), [0]),
        (of(1 + 2.0**-9, dtype="float16"), of(1, dtype="float16"), []),
        (of(HASH + 7, 5, dtype="int64"), of(HASH, 5, dtype="int64"), [0]),
        (of(2**63 + 1, dtype="uint64"), of(2**63, dtype="uint64"), [0]),
        (of(200001, dtype="int32"), of(200000, dtype="int32"), [0]),
        (of(True, False, dtype="bool"), of(True, True, dtype="bool"), [1]),
        (of(1 + 2j, 3, dtype="complex64"), of(1 + 2j, 3, dtype="complex64"), []),
    ],
)
def test_each_element_of_an_input_is_compared_by_itself(array, expected, places):
    differ, error = inputs.compare(array, expected)
    assert numpy.flatnonzero(differ).tolist() == places
    assert error is None or (error > 0) == bool(places)
    assert (error is None) == bool(places and not numpy.isfinite([*array[places], *expected[places]]).all())


def test_the_imaginary_part_of_a_complex_input_is_compared():
    assert inputs.compare(of(1 + 2j, dtype="complex64"), of(1 + 3j, dtype="complex64"))[1] > 0.3


def test_arrays_of_different_shapes_are_not_compared():
    assert inputs.compare(of(1), of(1, 1)) == inputs.compare(of(1), None) == (None, None)


def test_elements_that_were_computed_together_share_the_rounding_of_the_largest():
    centred = of(100, 1e-6), of(100, 1e-6 + 100 * EPSILON / 2)
    assert inputs.compare(*centred, computed=True)[1] == 0
    assert inputs.compare(*centred)[1] > 0
    outlier = of(1e6, 5, -3), of(1e6, 1, 2)
    assert numpy.flatnonzero(inputs.compare(*outlier, computed=True)[0]).tolist() == [1, 2]


def test_rounding_is_that_of_the_dtype_in_which_an_array_was_made():
    """Weights in half precision are read in float32."""
    pair = of(1 + 2.0**-7), of(1)
    assert [inputs.compare(*pair, dtype)[1] > 0 for dtype in (None, "float16", "bfloat16")] == [
        True, False, False,
    ]  # fmt: skip
