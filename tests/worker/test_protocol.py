import numpy
import pytest

from stele_worker import protocol


def test_a_message_is_unchanged_after_encode_and_decode():
    message = {"id": 1, "result": {"seconds": [0.5, 1e-9], "text": "1 → 2\n"}}
    line = protocol.encode(message)
    assert "\n" not in line
    assert protocol.decode(line.encode()) == message


def test_numpy_arrays_and_numbers_become_json_types():
    message = protocol.to_json({"a": numpy.arange(3), "b": numpy.float32(0.5), "c": (numpy.int64(1),)})
    assert message == {"a": [0, 1, 2], "b": 0.5, "c": [1]}


def test_a_number_that_is_not_finite_becomes_null():
    assert protocol.encode({"losses": [1.0, float("nan"), numpy.float32("inf")]}) == '{"losses":[1.0,null,null]}'


@pytest.mark.parametrize("line", [b"", b"Using TensorFlow backend.", b"[1, 2]", b"NaN"])
def test_decoding_a_line_that_is_not_a_json_object_raises_value_error(line):
    with pytest.raises(ValueError):
        protocol.decode(line)
