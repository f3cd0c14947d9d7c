"""What an answer of a worker must contain."""

import numpy
import pytest

from stele import schema
from stele.measuring import answers
from stele.measuring.measure import Plan, measure
from stele.measuring.worker import WorkerError
from stele_worker import agreement
from tests.support.faults import SETTINGS, python_environment

PLAN = Plan(task="gru", phase="infer", scale="smoke", data=None, data_origin={})


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        ([0.5, -0.01, 0.01], "a duration of -0.01 s"),
        ([0.5, 0.0, 0.01], "a duration of 0.0 s"),
        ([0.5, None, 0.01], r"Expected `float`, got `null` - at `\$\.steps\.seconds\[1\]`"),
        ([0.5, "0.01", 0.01], r"Expected `float`, got `str` - at `\$\.steps\.seconds\[1\]`"),
        ([], "there are no durations"),
        ([0.5], "1 warm-up steps of 1"),
    ],
)
def test_durations_that_a_clock_cannot_measure_are_an_invalid_answer(scripted, seconds, message):
    with pytest.raises(WorkerError, match=f"sent an invalid answer during 'infer': .*{message}"):
        measure(scripted(seconds=seconds), PLAN, SETTINGS)


def test_an_answer_that_lacks_keys_is_an_invalid_answer(start):
    worker = start(python_environment('send("result", {"protocol": protocol.VERSION, "versions": {}})'))
    with pytest.raises(WorkerError, match="sent an invalid answer during"):
        measure(worker, PLAN, SETTINGS)


def test_nan_which_is_not_json_is_an_invalid_answer(start):
    worker = start(python_environment('send("result", {"losses": [float("nan")]})'), timeout=20)
    with pytest.raises(WorkerError, match="sent an invalid answer during 'train': .*NaN is not JSON"):
        worker.ask("train")


def test_how_a_parameter_differs_is_kept_as_a_whole():
    loaded = numpy.array([0.1, 0.2], numpy.float32)
    unequal = agreement.find_unequal({"w": loaded + 1}, {"w": loaded})
    assert schema.convert(schema.to_json({"unequal": unequal}), answers.Parity) == {"unequal": unequal}
    assert "rounded" in unequal["w"]


def test_a_key_of_a_newer_worker_is_left_out():
    assert schema.convert({"repeats": True, "colour": "red"}, answers.Parity) == {"repeats": True}
