"""What a worker finds out about its own network: parameters that differ from those loaded, and calls that differ."""

import warnings
from types import SimpleNamespace

import numpy
import pytest

from stele_worker import agreement
from stele_worker.subjects import ModelSubject
from tests.support.numpy_framework import framework

WEIGHTS = numpy.random.RandomState(0).standard_normal((3, 4)).astype(numpy.float32)


def to_bfloat16(array):
    """Return the array rounded to the nearest bfloat16, as float32."""
    return ((array.view(numpy.uint32) + 0x8000) & 0xFFFF0000).astype(numpy.uint32).view(numpy.float32)


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (to_bfloat16(WEIGHTS), "bfloat16"),
        (WEIGHTS.astype(numpy.float16).astype(numpy.float32), "float16"),
        (WEIGHTS + 1e-3, None),
        (to_bfloat16(WEIGHTS) * 2, None),
        (WEIGHTS.T, None),
    ],
)
def test_a_parameter_that_was_rounded_has_the_dtype(value, rounded):
    assert agreement.find_unequal({"w": value}, {"w": WEIGHTS})["w"]["rounded"] == rounded


def test_numbers_too_large_for_float16_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert agreement.rounded_to(to_bfloat16(1e9 * WEIGHTS), 1e9 * WEIGHTS) == "bfloat16"


def test_a_model_must_hold_the_weights_that_another_arm_saved(tmp_path):
    path = tmp_path / "weights.npz"
    numpy.savez(path, w=WEIGHTS)
    held = {"w": to_bfloat16(WEIGHTS), "new": numpy.zeros(2)}
    other = ModelSubject(SimpleNamespace(model={"weights": str(path)}), None)
    assert list(agreement.find_unequal(held, other.loaded(held))) == ["w"]
    first = ModelSubject(SimpleNamespace(model={"weights": None}), None)
    assert agreement.find_unequal(held, first.loaded(held)) == {}


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1.0, 2.0], [1.0, 2.001], True),
        ([1.0, 2.0], [1.0, 2.003], False),
        ([1.0, NAN], [1.0, NAN], True),
        ([1.0, NAN], [1.0, 2.0], False),
        ([1.0, INF], [1.0, INF], True),
        ([NAN, INF], [NAN, INF], True),
        ([1.0, INF], [1.1, INF], False),
        ([0.0, 0.0], [0.0, 0.0], True),
    ],
)
def test_two_calls_agree_if_they_differ_only_by_rounding(first, second, expected):
    assert agreement.calls_agree(numpy.array(first), numpy.array(second)) is expected


class Rounding:
    """A recipe that stores its parameter as bfloat16 if ``rounds``, and fails in inference."""

    def __init__(self, rounds):
        self.rounds = rounds

    def network(self, task):
        return {}

    def load(self, net, weights):
        return {"w": to_bfloat16(WEIGHTS) if self.rounds else WEIGHTS}

    def stored(self, net):
        return net

    def neutral(self, name, array):
        return array

    def inference_step(self, net, task):
        raise ValueError("dtypes differ.")


class Subject:
    task = SimpleNamespace(_asdict=dict, inputs=(None,))

    def __init__(self, rounds):
        self.recipe = Rounding(rounds)

    def weights(self):
        return {"w": WEIGHTS}

    def loaded(self, weights):
        return weights

    def parity_batch(self):
        return [numpy.zeros(2)]

    def arrange(self, arrays):
        return arrays


IDENTITY = framework(fetch=lambda value: value)


def test_an_error_of_the_framework_names_a_parameter_that_was_rounded():
    with pytest.raises(RuntimeError, match="dtypes differ. Possible cause: w is read back rounded to bfloat16$"):
        agreement.check(IDENTITY, Subject(rounds=True), "infer")
    with pytest.raises(ValueError, match=r"^dtypes differ\.$"):
        agreement.check(IDENTITY, Subject(rounds=False), "infer")


def profiler(run):
    run()
    return {"add": (0.5, 3)}


def fail(run):
    raise RuntimeError("no profiler in this build")


@pytest.mark.parametrize(
    ("attributes", "operations"),
    [
        ({"HAS_PROFILER": True, "profile": profiler}, {"add": 3}),
        ({"HAS_PROFILER": True, "profile": fail}, None),
        ({"HAS_PROFILER": False, "profile": profiler}, None),
    ],
)
def test_the_profiler_counts_the_operations_of_a_step_if_it_can(attributes, operations):
    counting = framework(wait=lambda value: None, **attributes)
    context = agreement.Context(counting, None, None, False, None, None, 2)
    assert context.operations(lambda: 1.0) == operations
