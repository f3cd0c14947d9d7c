"""Weights from files, matched with what a network holds; and what a model returns, taken apart."""

import dataclasses
import json
import os
import zipfile
from collections import namedtuple

import numpy
import pytest
from safetensors.numpy import save_file

from stele_worker.models import outputs, safetensors_files, weights
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


@pytest.mark.parametrize(
    ("arrays", "given", "guess"),
    [
        (named(a=(3,), b=(3,), c=(2,)), None, False),
        (named(x=(3,), y=(3,), z=(2,)), None, True),
        (named(a=(3,), y=(3,), c=(2,)), None, False),  # the only one without its name
        (named(a=(3,), y=(3,), z=(2,)), None, False),
        (named(x=(3,), y=(3,), z=(2,)), {"a": "x"}, False),
        (named(x=(3,), y=(3,), z=(2,)), {"c": "z"}, True),
        (named(x=(3,), y=(3,), c=(2,)), {"a": "y", "b": "x"}, False),
    ],
)
def test_a_match_by_order_is_a_guess_if_arrays_without_their_names_could_be_exchanged(arrays, given, guess):
    weights.match(EQUAL, arrays, model={"weights": "old.npz", "weights_map": given})
    assert weights.last["guess"] is guess


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
    numpy.savez(path, **named(gate=(3,), one=(2,), two=(2,)), mask=numpy.array([numpy.nan, 1]))
    converted = {"gate": numpy.zeros(3), "both": numpy.zeros((2, 2)), "two": numpy.zeros(2)}
    converted["mask"] = numpy.array([numpy.nan, 1])
    with numpy.load(path) as arrays:
        weights.note_checkpoint(converted, arrays)
    assert weights.last == {
        "names": {"gate": "gate", "mask": "mask"}, "way": "checkpoint", "guess": False,
    }  # fmt: skip
    assert list(weights.of_arm(path, converted)) == ["gate", "mask"]


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


def compressed(path):
    numpy.savez_compressed(path, a=numpy.zeros(10**6))


def with_a_false_header(path):
    """Write an archive with an array of 20 numbers, whose header says that it has 10**9."""
    numpy.savez(path, a=numpy.zeros(20))
    with zipfile.ZipFile(path) as archive:
        text = archive.read("a.npy").replace(b"(20,), }        ", b"(1000000000,), }")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", text)


def cut_off(path):
    numpy.savez(path, a=numpy.zeros(1000))
    path.write_bytes(path.read_bytes()[:900])


def replaced(path):
    path.write_text("no archive")


def of_objects(path):
    numpy.savez(path, a=numpy.array([{}], dtype=object))


@pytest.mark.parametrize("damage", [compressed, with_a_false_header, cut_off, replaced, of_objects])
def test_an_archive_that_is_damaged_is_refused_before_its_arrays_are_read(tmp_path, monkeypatch, damage):
    damage(tmp_path / "w.npz")
    monkeypatch.setattr(numpy.lib.format, "read_array", lambda *_, **__: pytest.fail("read"))
    with pytest.raises(SpecError, match=r"w\.npz cannot be read as an \.npz file: "):
        weights.read_files({"weights": str(tmp_path / "w.npz")})


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
    assert safetensors_files.read(str(tmp_path / "w.safetensors"))["a"].tolist() == [1.5, -2.0]


def safetensors(header, data=b"", length=None):
    """Return the bytes of a file with this header, as JSON or as bytes, and with this stated length."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(begin, end, shape=(1,), dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "its header has 0 bytes, but the file has 0"),
        (b"\x03\0\0\0\0\0\0\0abc", "Expecting value"),
        (b"\xff" * 8, "its header has 18446744073709551615 bytes, but the file has 8"),
        (safetensors([]), "its header is not a JSON object"),
        (safetensors({}, length=2**40), "its header has 1099511627776 bytes"),
        (safetensors(b'{"a":' * 100_000), "its header is nested too deeply"),
        (safetensors(b"[" * 100_000), "its header is nested too deeply"),
        (safetensors({"a": entry(0, 8, [2])}, b"1234"), "0 to 8 of 'a' are outside of the file"),
        (safetensors({"a": entry(0, 2**60, [2**58])}, b"1234"), "'a' are outside of the file"),
        (safetensors({"a": entry(0, 4), "b": entry(2, 6)}, b"12345678"), "2 to 6 of 'b' .* of another array"),
        (safetensors({"a": entry(-4, 0)}, b"1234"), "-4 to 0 of 'a'"),
        (safetensors({"a": entry(0, 4, [-1, -1])}, b"1234"), r"'a' has the shape \[-1, -1\]"),
        (safetensors({"a": entry(0, 4, [2**40])}, b"1234"), "has 4 bytes"),
        (safetensors({"a": entry(0, 4, dtype="F8_E4M3")}, b"1234"), "type 'F8_E4M3', which is not supported"),
        (safetensors({"a": {"dtype": "F32"}}), "'a' does not have exactly data_offsets, dtype, shape"),
        (safetensors({"a": 1}), "'a' does not have exactly"),
    ],
    ids=range(16),
)
def test_a_file_that_holds_no_safetensors_is_refused_with_its_name_and_the_reason(tmp_path, content, reason):
    (tmp_path / "w.safetensors").write_bytes(content)
    with pytest.raises(SpecError, match=f"--pretrained .*w.safetensors cannot be read as .*: .*{reason}"):
        safetensors_files.read(str(tmp_path / "w.safetensors"))


def test_a_fifo_holds_no_safetensors(tmp_path):
    os.mkfifo(tmp_path / "w.safetensors")
    with pytest.raises(SpecError, match="it is not a regular file"):
        safetensors_files.read(str(tmp_path / "w.safetensors"))


def test_a_header_is_checked_before_the_data_is_read(tmp_path, monkeypatch):
    (tmp_path / "w.safetensors").write_bytes(safetensors({"a": entry(0, 4), "z": entry(4, 8, [9])}, b"12345678"))
    monkeypatch.setattr(safetensors_files, "read_array", lambda *_, **__: pytest.fail("read"))
    with pytest.raises(SpecError, match="'z' of shape"):
        safetensors_files.read(str(tmp_path / "w.safetensors"))


def test_arrays_keep_the_order_of_the_header(tmp_path):
    (tmp_path / "w.safetensors").write_bytes(safetensors({"b": entry(4, 8), "a": entry(0, 4)}, b"12345678"))
    assert list(safetensors_files.read(str(tmp_path / "w.safetensors"))) == ["b", "a"]


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
    assert main is None or outputs.named(output)[outputs.main_name(output)] is main
    assert outputs.loss(output) is loss


class Cache:
    """As one of transformers: it has no names, and None among its items."""

    def __iter__(self):
        return iter([(LOGITS, OTHER, None), (LOGITS, OTHER, None)])


class Answer:
    def __init__(self):
        self.boxes, self.parts, self._hidden, self.me = LOGITS, {"a": OTHER}, OTHER, self


@pytest.mark.parametrize(
    ("output", "names"),
    [
        (LOGITS, [""]),
        ((LOGITS, None, (OTHER, (OTHER, None, OTHER))), ["1", "3.1", "3.2", "3.3"]),
        (
            {"logits": LOGITS, "cache": Cache(), "text": "a", "n": 3},
            ["logits", *(f"cache.{n}" for n in range(1, 5))],
        ),
        ({"cache": ((LOGITS, OTHER), (LOGITS, OTHER))}, [f"cache.{n}" for n in range(1, 5)]),
        ([{"boxes": LOGITS}, {"boxes": LOGITS}], ["1.boxes", "2.boxes"]),
        (Output(LOGITS, [OTHER]), ["logits", "auxiliary.1"]),
        (Answer(), ["boxes", "parts.a"]),
        (numpy.array(["text"]), []),
        (None, []),
    ],
)
def test_all_arrays_of_an_answer_have_names(output, names):
    assert list(outputs.named(output)) == names


class Thing:
    def __init__(self):
        self.scores, self.count = LOGITS, 3


@dataclasses.dataclass
class Record:
    label: str
    score: float


@pytest.mark.parametrize(
    ("output", "found", "ignored"),
    [
        ({"logits": LOGITS, "label": "dog", "n": 3}, {"label": "'dog'", "n": 3}, []),
        ({"ids": [1, 2], "score": 0.5, "sure": True}, {"ids": [1, 2], "score": 0.5, "sure": True}, []),
        ({"boxes": [[1, 2], (3, 4.5)], "none": None}, {"boxes": [[1, 2], [3, 4.5]], "none": "None"}, []),
        ((LOGITS, "cat", 7), {"2": "'cat'", "3": 7}, []),
        ({"rows": [[1], [2, 3]]}, {"rows.1": 1, "rows.2": 2, "rows.3": 3}, []),  # of different lengths
        ({"pairs": [("dog", 0.5)]}, {"pairs.1": "'dog'", "pairs.2": 0.5}, []),
        ([Record("dog", 0.5)], {"1.label": "'dog'", "1.score": 0.5}, []),
        (Output(LOGITS, "late"), {"auxiliary": "'late'"}, []),
        ({"names": numpy.array(["a", "b"])}, {"names": "['a', 'b']"}, []),
        ({"big": [2**70]}, {"big.1": 2**70}, []),
        ({"aux": Thing(), "f": len}, {}, ["aux (Thing)", "f (builtin_function_or_method)"]),
        ({"cache": Cache()}, {}, []),
        (LOGITS, {}, []),
    ],
)
def test_what_a_model_returns_beside_arrays_is_found_or_named(output, found, ignored):
    plain, names = outputs.plain(output)
    assert names == ignored
    assert {name: one if isinstance(one, str) else one.tolist() for name, one in plain.items()} == found
    assert not outputs.named(output).keys() & plain.keys()


def test_a_complex_output_is_two_real_numbers():
    array = numpy.array([[1 + 2j, 3 - 4j]])
    assert outputs.fetch(array, None).tolist() == [[[1, 2], [3, -4]]]
    assert outputs.fetch(LOGITS, numpy.asarray) is LOGITS
