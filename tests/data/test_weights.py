"""stele.data.weights: read pretrained ResNet-50 weights from a safetensors file."""

import json

import numpy
import pytest
import safetensors.numpy

from stele.data import weights
from stele.errors import DataError

SEEDED = {"conv1.weight": (2, 3), "bn1.bias": (4,)}  # replaces the names and shapes of ResNet-50


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


def test_bfloat16_is_converted_exactly(path):
    values = numpy.array([1.0, -2.5, 3.0, 0.0078125], numpy.float32)
    facts, body = {}, b""
    for name, part in (("bn1.bias", values), ("conv1.weight", numpy.zeros((2, 3), numpy.float32))):
        raw = (part.view(numpy.uint32) >> 16).astype("<u2").tobytes()
        offsets = [len(body), len(body) + len(raw)]
        facts[name] = {"dtype": "BF16", "shape": part.shape, "data_offsets": offsets}
        body += raw
    text = json.dumps(facts).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
    assert weights.read(path)["bn1.bias"].tolist() == values.tolist()


def test_num_batches_tracked_is_ignored(path):
    extra = {"bn1.num_batches_tracked": numpy.array(7)}
    safetensors.numpy.save_file({**tensors(), **extra}, path)
    assert list(weights.read(path)) == list(SEEDED)


def test_a_missing_parameter_is_named(path):
    safetensors.numpy.save_file({"bn1.bias": numpy.zeros(4, "f4")}, path)
    with pytest.raises(DataError, match=r"resnet50.safetensors does not contain 'conv1.weight'\."):
        weights.read(path)


def test_unknown_parameters_are_named(path):
    extra = {"fc.weight": numpy.zeros(1), "head.weight": numpy.zeros(1)}
    safetensors.numpy.save_file({**tensors(), **extra}, path)
    with pytest.raises(DataError, match=r"contains the unknown parameter 'fc.weight' and 1 more\."):
        weights.read(path)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (numpy.zeros((3, 2), "f4"), r"F32 \(3, 2\), expected float32 \(2, 3\)"),
        (numpy.zeros((2, 3), "i8"), r"I64 \(2, 3\), expected float32"),
        (numpy.full((2, 3), numpy.nan, "f4"), "not finite"),
        (numpy.full((2, 3), 1e300), "not finite"),
    ],
)
def test_a_wrong_array_is_an_error_with_its_name(path, value, message):
    safetensors.numpy.save_file(tensors(conv1_weight=value), path)
    with pytest.raises(DataError, match=rf"\(conv1.weight\).*{message}"):
        weights.read(path)


@pytest.mark.parametrize("raw", [b"", b"hello, world", b"\xff" * 8, b"\x80\x02]."])
def test_a_file_of_another_kind_is_an_error(path, raw):
    path.write_bytes(raw)
    with pytest.raises(DataError, match="is not a complete safetensors file"):
        weights.read(path)


def test_a_truncated_file_is_an_error(path):
    safetensors.numpy.save_file(tensors(), path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="is not a complete safetensors file"):
        weights.read(path)


def test_a_file_too_large_for_resnet50_is_not_read(path, monkeypatch):
    monkeypatch.setattr(weights, "LARGEST", 10)
    safetensors.numpy.save_file(tensors(), path)
    with pytest.raises(DataError, match="is too large for ResNet-50"):
        weights.read(path)
