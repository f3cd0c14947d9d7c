"""stele.data.weights: pretrained ResNet-50 out of a safetensors file."""

import json

import numpy
import pytest
import safetensors.numpy

from stele.data import weights
from stele.data.errors import DataError

SEEDED = {"conv1.weight": (2, 3), "bn1.bias": (4,)}  # stands for ResNet-50's names and shapes


@pytest.fixture(autouse=True)
def small(monkeypatch):
    zeros = {name: numpy.zeros(shape, numpy.float32) for name, shape in SEEDED.items()}
    monkeypatch.setattr(weights.resnet50, "weights", lambda seed: zeros)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "resnet50.safetensors"


def tensors(dtype="float32", **changes):
    arrays = {name: numpy.full(shape, 1.5, dtype) for name, shape in SEEDED.items()}
    return {**arrays, **{name.replace("_", "."): array for name, array in changes.items()}}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_every_float_becomes_float32(path, dtype):
    safetensors.numpy.save_file(tensors(dtype), path)
    arrays = weights.read(path)
    assert list(arrays) == list(SEEDED)
    assert all(array.dtype == numpy.float32 and (array == 1.5).all() for array in arrays.values())


def test_bfloat16_is_widened_exactly(path):
    values = numpy.array([1.0, -2.5, 3.0, 0.0078125], numpy.float32)
    facts, body = {}, b""
    for name, part in (("bn1.bias", values), ("conv1.weight", numpy.zeros((2, 3), numpy.float32))):
        raw = (part.view(numpy.uint32) >> 16).astype("<u2").tobytes()
        place = [len(body), len(body) + len(raw)]
        facts[name] = {"dtype": "BF16", "shape": part.shape, "data_offsets": place}
        body += raw
    text = json.dumps(facts).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
    assert weights.read(path)["bn1.bias"].tolist() == values.tolist()


def test_counts_of_batches_are_left_out(path):
    extra = {"bn1.num_batches_tracked": numpy.array(7)}
    safetensors.numpy.save_file({**tensors(), **extra}, path)
    assert list(weights.read(path)) == list(SEEDED)


def test_a_missing_name_is_named(path):
    safetensors.numpy.save_file({"bn1.bias": numpy.zeros(4, "f4")}, path)
    with pytest.raises(DataError, match=r"resnet50.safetensors lacks 'conv1.weight'\."):
        weights.read(path)


def test_unknown_names_are_named(path):
    extra = {"fc.weight": numpy.zeros(1), "head.weight": numpy.zeros(1)}
    safetensors.numpy.save_file({**tensors(), **extra}, path)
    with pytest.raises(DataError, match=r"has the unknown 'fc.weight' and 1 more\."):
        weights.read(path)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (numpy.zeros((3, 2), "f4"), r"F32 \(3, 2\) where float32 \(2, 3\) belongs"),
        (numpy.zeros((2, 3), "i8"), r"I64 \(2, 3\) where float32"),
        (numpy.full((2, 3), numpy.nan, "f4"), "not finite"),
        (numpy.full((2, 3), 1e300), "not finite"),
    ],
)
def test_a_wrong_array_is_refused_by_its_name(path, value, message):
    safetensors.numpy.save_file(tensors(conv1_weight=value), path)
    with pytest.raises(DataError, match=rf"\(conv1.weight\).*{message}"):
        weights.read(path)


@pytest.mark.parametrize("raw", [b"", b"hello, world", b"\xff" * 8, b"\x80\x02]."])
def test_a_file_of_another_kind_is_refused(path, raw):
    path.write_bytes(raw)
    with pytest.raises(DataError, match="is not a whole safetensors file"):
        weights.read(path)


def test_a_file_that_was_cut_is_refused(path):
    safetensors.numpy.save_file(tensors(), path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="is not a whole safetensors file"):
        weights.read(path)


def test_a_file_too_large_for_resnet50_is_not_read(path, monkeypatch):
    monkeypatch.setattr(weights, "LARGEST", 10)
    safetensors.numpy.save_file(tensors(), path)
    with pytest.raises(DataError, match="larger than ResNet-50 can be"):
        weights.read(path)
