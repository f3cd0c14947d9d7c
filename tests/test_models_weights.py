"""Weights from files, matched with what a network holds; and what a model returns, taken apart."""

import json
from collections import namedtuple

import numpy
import pytest
from safetensors.numpy import save_file

from stele_worker.models import outputs, weights
from stele_worker.models.errors import SpecError, WeightsError

SHAPES = {"a": (2, 3), "b": (3,)}
ARRAYS = {"a": numpy.zeros((2, 3)), "b": numpy.ones(3)}


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch):
    monkeypatch.setattr(weights, "last", {})


def test_weights_are_matched_by_name_in_any_order():
    assert weights.match(SHAPES, dict(reversed(ARRAYS.items()))) == ARRAYS


def test_weights_that_the_model_does_not_have_are_left_out():
    assert list(weights.match(SHAPES, dict(ARRAYS, c=numpy.ones(1)))) == ["a", "b"]


def test_weights_with_other_names_are_matched_by_their_shapes_and_it_is_said():
    matched = weights.match(SHAPES, {"dense_2/bias": ARRAYS["b"], "dense_2/kernel": ARRAYS["a"]})
    assert [matched[name].shape for name in SHAPES] == [(2, 3), (3,)]
    assert weights.remark() == (
        "The weights have other names than the model. By their shapes, 'a' gets 'dense_2/kernel' and 1 more."
    )
    weights.match(SHAPES, ARRAYS)
    assert weights.remark() is None


def named(**shapes):
    return {name: numpy.full(shape, number, float) for number, (name, shape) in enumerate(shapes.items())}


EQUAL = {"a": (3,), "b": (3,), "c": (2,)}
PAIRS = [
    # (arrays, given, whether they are in the order of definition, the pairs that are not equal names, way)
    (named(a=(3,), b=(3,), c=(2,)), None, False, {}, "names"),
    (named(a=(3,), b=(3,), c=(2,), more=(9,)), None, False, {}, "names"),
    (named(a=(3,), zzz=(3,), c=(2,)), None, False, {"b": "zzz"}, "shapes"),
    (named(a=(3,), b=(3,), x=(2,)), None, False, {"c": "x"}, "shapes"),
    (named(x=(3,), y=(3,), z=(2,)), None, True, {"a": "x", "b": "y", "c": "z"}, "order"),
    (named(a=(3,), y=(3,), c=(2,)), None, True, {"b": "y"}, "order"),
    (named(x=(3,), y=(3,), c=(2,)), {"a": "y", "b": "x"}, False, {"a": "y", "b": "x"}, "map"),
    (named(x=(3,), b=(3,), c=(2,)), {"a": "x", "b": "none"}, True, {"a": "x"}, "map"),
    (named(x=(3,), y=(3,), z=(2,)), {"b": "x"}, False, {"a": "y", "b": "x", "c": "z"}, "shapes"),
]


@pytest.mark.parametrize(("arrays", "given", "ordered", "renamed", "way"), PAIRS)
def test_arrays_are_paired_where_only_one_pairing_is_possible(arrays, given, ordered, renamed, way):
    expected = dict({name: name for name in EQUAL if name in arrays}, **renamed)
    assert weights.pair(EQUAL, arrays, (), given, ordered) == (expected, way)


@pytest.mark.parametrize(
    ("arrays", "ordered"),
    [
        (named(x=(3,), y=(3,), c=(2,)), False),  # a file may be sorted by name
        (named(x=(3,), b=(3,), y=(2,), z=(2,)), True),  # one more
        (named(b=(3,), x=(3,), c=(2,)), True),  # x comes after b, as "a" does not
        (named(x=(3,), z=(2,), y=(3,)), True),  # another order, and x and y could be exchanged
        (named(x=(4,), b=(3,), c=(2,)), False),  # another shape
        ({}, True),
    ],
)
def test_arrays_that_could_be_exchanged_are_refused(arrays, ordered):
    with pytest.raises(WeightsError, match=r"The weights lack '.' of shape \(\d,\)"):
        weights.pair(EQUAL, arrays, (), None, ordered)


def test_weights_of_another_arm_are_in_the_order_of_definition():
    arrays = named(x=(3,), y=(3,), z=(2,))
    assert weights.match(EQUAL, arrays, model={"weights": "old.npz"})["b"] is arrays["y"]
    with pytest.raises(WeightsError):
        weights.match(EQUAL, arrays, model={"weights": None, "pretrained": "w.safetensors"})


def test_arrays_of_another_arm_are_compared_as_they_were_matched(tmp_path):
    path = tmp_path / "weights.npz"
    numpy.savez(path, **ARRAYS)
    a, b, extra = numpy.ones((2, 3)), numpy.zeros(3), numpy.zeros(())
    assert_arrays(weights.of_arm(path, {"b": b, "a": a}), {"b": ARRAYS["b"], "a": ARRAYS["a"]})
    assert_arrays(weights.of_arm(path, {"a": a, "count": extra, "b": b}), ARRAYS)
    assert_arrays(weights.of_arm(path, {"a": a}), {"a": ARRAYS["a"]})
    weights.match({"x": a.shape, "y": b.shape}, ARRAYS, model={"weights": "old.npz"})
    assert_arrays(weights.of_arm(path, {"x": a, "y": b}), {"x": ARRAYS["a"], "y": ARRAYS["b"]})


def test_arrays_that_a_library_converted_are_compared_where_they_are_equal(tmp_path):
    path = tmp_path / "weights.npz"
    numpy.savez(path, **named(gate=(3,), one=(2,), two=(2,)))
    converted = {"gate": numpy.zeros(3), "both": numpy.zeros((2, 2)), "two": numpy.zeros(2)}
    with numpy.load(path) as arrays:
        weights.note_checkpoint(converted, arrays)
    assert weights.last == {"names": {"gate": "gate"}, "way": "checkpoint"}
    assert list(weights.of_arm(path, converted)) == ["gate"]


def assert_arrays(arrays, expected):
    assert set(arrays) == set(expected)
    for name, array in expected.items():
        numpy.testing.assert_array_equal(arrays[name], array)


def test_running_statistics_may_be_missing():
    assert list(weights.match(dict(SHAPES, count=()), ARRAYS, optional={"count"})) == ["a", "b"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (dict(ARRAYS, b=numpy.ones(4)), r"'b' do not fit: the model has shape \(3,\), the file has \(4,\)"),
        (dict(ARRAYS, a=ARRAYS["b"]), r"'a' do not fit: .* \(2, 3\), the file has \(3,\) \('a'\)"),
        ({"a": ARRAYS["a"]}, r"lack 'b' of shape \(3,\): they hold 1 arrays, the model 2"),
    ],
)
def test_the_first_weights_that_do_not_fit_are_named_with_both_shapes(arrays, message):
    with pytest.raises(SpecError, match=message):
        weights.match(SHAPES, arrays)


def test_an_archive_of_another_arm_is_read(tmp_path):
    numpy.savez(tmp_path / "w.npz", **{"layer/kernel": ARRAYS["a"]})
    read = weights.read_files({"weights": str(tmp_path / "w.npz"), "pretrained": "ignored"})
    numpy.testing.assert_array_equal(read["layer/kernel"], ARRAYS["a"])
    assert weights.read_files({"weights": None, "pretrained": None}) is None


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "int32", "uint8", "bool"])
def test_safetensors_are_read_in_every_type(tmp_path, dtype):
    array = numpy.arange(6).reshape(2, 3).astype(dtype)
    save_file({"a": array, "b": array[:1].copy()}, tmp_path / "w.safetensors", metadata={"format": "pt"})
    read = weights.read_files({"pretrained": str(tmp_path / "w.safetensors")})
    numpy.testing.assert_array_equal(read["a"], array)
    assert (read["a"].dtype, read["b"].shape) == (array.dtype, (1, 3))


def test_bfloat16_is_widened(tmp_path):
    header = json.dumps({"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}).encode()
    values = numpy.array([1.5, -2.0], "<f4").view("<u4") >> 16
    data = len(header).to_bytes(8, "little") + header + values.astype("<u2").tobytes()
    (tmp_path / "w.safetensors").write_bytes(data)
    assert weights.read_safetensors(str(tmp_path / "w.safetensors"))["a"].tolist() == [1.5, -2.0]


@pytest.mark.parametrize("data", [b"", b"\x03\0\0\0\0\0\0\0abc", b"\xff" * 8, b"\x02\0\0\0\0\0\0\0[]"])
def test_a_file_that_holds_no_safetensors_is_refused(tmp_path, data):
    (tmp_path / "w.safetensors").write_bytes(data)
    with pytest.raises(SpecError, match="w.safetensors cannot be read as a .safetensors file"):
        weights.read_safetensors(str(tmp_path / "w.safetensors"))


LOGITS, LOSS, OTHER = numpy.zeros((4, 5)), numpy.float32(2), numpy.zeros((4, 7))
Output = namedtuple("Output", "logits auxiliary")


@pytest.mark.parametrize(
    ("output", "main", "loss"),
    [
        (LOGITS, LOGITS, None),
        (LOSS, LOSS, LOSS),
        ({"hidden": OTHER, "logits": LOGITS, "loss": LOSS}, LOGITS, LOSS),
        ({"loss": LOSS, "last_hidden_state": LOGITS, "cache": OTHER}, LOGITS, LOSS),
        ({"loss": LOSS, "anything": LOGITS}, LOGITS, LOSS),
        ((LOSS, LOGITS), LOGITS, LOSS),
        ((LOGITS, None), LOGITS, None),
        ([LOGITS, OTHER], LOGITS, None),
        (Output(LOGITS, OTHER), LOGITS, None),
        (({"logits": LOGITS}, OTHER), LOGITS, None),
        (None, None, None),
        ((), None, None),
    ],
)
def test_a_models_answer_is_taken_apart(output, main, loss):
    assert outputs.main(output) is main
    assert outputs.loss(output) is loss
