"""Each rung agrees on equal numbers, and differs on its kind of error, with the parameter in the message."""

import math
import re

import pytest

from stele.parity import ladder
from stele.parity.ladder import Finding
from stele_worker.sketch import sketch

GOLDEN = {
    "task": "t",
    "norms": {"w": 1.0, "b": 1.0},
    "logits": [[1.0, 2.0]],
    "layers": {"conv1": [1.0, 0.5, 0.5]},
    "loss": 2.3,
    "gradients": {"w": [1.0, 0.5, 0.5], "b": [1e-3, 1e-4, 1e-4]},
    "updates": {"1": {"w": [0.01, 0.005, 0.005]}},
    "losses": [2.3, 2.2],
}
CORRECT = {**GOLDEN, "unequal": {}, "repeats": True, "tracked": False}


def findings_of(precision="fp32", task="cnn", **changes):
    return ladder.compare({**CORRECT, **changes}, GOLDEN, task=task, precision=precision)


def difference(**changes):
    return ladder.first_difference(findings_of(**changes))


def test_all_rungs_agree_if_all_numbers_are_equal():
    assert [finding.status for finding in findings_of()] == ["agrees"] * 8
    assert ladder.highest_rung(findings_of()) == 8


UNEQUAL = {"differ": 3, "of": 9, "order": False, "deviation": 0.1, "expected": 0.2}
DIFFERENCES = [
    (
        1,
        {"unequal": {"conv1.weight": UNEQUAL}},
        "conv1.weight: 3 of 9 values read back differ.* different initialiser",
    ),
    (
        1,
        {"unequal": {"w": {**UNEQUAL, "order": True}}},
        "w: values read back in a different order than loaded. Check the layout or the gate order in load",
    ),
    (1, {"unequal": {"w": {**UNEQUAL, "deviation": None}}}, "w: missing from the values read back"),
    (2, {"layers": {"conv1": [1.0, 0.5, 0.6]}}, "output of conv1: relative error 0.1, tolerance 1e-05"),
    (3, {"logits": [[1.0, 2.2]]}, "^relative error 0.1, tolerance 1e-05"),
    (3, {"logits": [[1.0, None]]}, "^relative error inf"),
    (3, {"logits": [[1.0, 2.0, 3.0]]}, "^relative error inf"),
    (4, {"loss": 2.4}, "2.4 instead of 2.3: relative error"),
    (4, {"loss": math.nan}, "nan instead of 2.3: relative error inf"),
    (5, {"gradients": {**GOLDEN["gradients"], "b": [1e-3, 1e-4, 2e-4]}}, "gradient of b: relative error 0.1"),
    (5, {"gradients": {"w": [1.0, 0.5, 0.5]}}, "gradient of b: relative error inf"),
    (5, {"gradients": {**GOLDEN["gradients"], "c": [0.0, 0.0, 0.0]}}, "gradient of c: relative error inf"),
    (6, {"updates": {"1": {"w": [0.019, 0.0095, 0.0095]}}}, "update of w after step 1: relative error"),
    (6, {"updates": {}}, "update of w after step 1: relative error inf"),
    (7, {"losses": [2.3, 2.1]}, "step 2: relative error"),
    (7, {"losses": [2.3, 2.2, 2.1]}, "3 steps instead of 2: relative error inf"),
    (8, {"repeats": False}, "two calls on one batch differ"),
    (8, {"tracked": True}, "the logits keep data for gradients"),
]


@pytest.mark.parametrize("rung, changes, message", DIFFERENCES)
def test_a_rung_that_differs_names_its_parameter_in_the_message(rung, changes, message):
    finding = difference(**changes)
    assert finding.rung == rung
    assert re.search(message, finding.message)
    assert ladder.highest_rung(findings_of(**changes)) == rung - 1
    assert re.match(rf"{finding.title} differs? \(rung {rung}\): ", ladder.message(finding))


def test_the_message_names_the_numbers_the_rung_and_the_tolerance():
    message = ladder.message(difference(logits=[[1.0, 2.6]]))
    assert message == "logits differ (rung 3): relative error 0.3, tolerance 1e-05"


def test_the_rounding_error_of_float32_is_no_difference_of_an_update():
    assert difference(updates={"1": {"w": [0.01, 0.005, 0.005 + 2**-24]}}) is None


def test_resnet50_and_lower_precisions_have_larger_tolerances():
    changes = {"logits": [[1.0, 2.0 + 1e-4]]}
    assert difference(**changes).rung == 3
    assert difference(task="resnet50", **changes) is None
    assert difference(precision="bf16", **changes) is None


@pytest.mark.parametrize("rung", ladder.COMPARED)
def test_convolutions_in_float32_on_a_gpu_have_a_larger_tolerance(rung):
    limit = ladder.limit
    assert limit(rung, "cnn", "fp32", "cuda") == pytest.approx(10 * limit(rung, "cnn", "fp32"))
    assert limit(rung, "cnn", "tf32", "cuda") == limit(rung, "cnn", "tf32")
    assert limit(rung, "gru", "fp32", "cuda") == limit(rung, "gru", "fp32")


def test_the_first_layer_that_differs_is_named_not_the_one_with_the_largest_error():
    golden = {**GOLDEN, "layers": {name: [1.0, 0.5, 0.5] for name in ("conv1", "conv2", "conv3")}}
    layers = {"conv1": [1.0, 0.5, 0.5], "conv2": [1.0, 0.5, 0.6], "conv3": [1.0, 0.5, 0.9]}
    findings = ladder.compare({**CORRECT, "layers": layers}, golden, task="cnn", precision="fp32")
    assert findings[1].where == "conv2"


def test_layers_that_a_recipe_cannot_show_are_absent_with_a_reason():
    finding = findings_of(layers=None)[1]
    assert (finding.status, finding.message) == ("absent", "the recipe's layers are one function")
    assert ladder.highest_rung(findings_of(layers=None)) == 8


def test_only_the_rungs_that_the_numbers_cover_are_compared():
    numbers = {"task": "t", "logits": GOLDEN["logits"]}
    assert [finding.rung for finding in ladder.compare(numbers, GOLDEN, task="cnn", precision="fp32")] == [3]


def test_repetition_compares_losses_and_parameters_bit_for_bit():
    answer = {"losses": [1.0, 0.9], "digest": "a"}
    assert ladder.repetition([answer, answer], nondeterminism=None) == Finding(9, "agrees", error=0.0)
    assert (
        "different losses from step 2 on"
        in ladder.repetition([answer, {**answer, "losses": [1.0, 0.8]}], nondeterminism=None).message
    )
    assert "different parameters" in ladder.repetition([answer, {**answer, "digest": "b"}], nondeterminism=None).message
    assert ladder.repetition([], nondeterminism="atomics").status == "absent"


def test_a_sketch_depends_on_size_and_order():
    assert sketch([3.0, 4.0])[0] == 5.0
    assert sketch([1.0, 2.0, 3.0]) != sketch([3.0, 2.0, 1.0])
    assert sketch([[1.0, 2.0], [3.0, 4.0]]) == sketch([1.0, 2.0, 3.0, 4.0])


def test_accuracies_near_the_reference_are_equivalent_and_lower_ones_are_not():
    reference = [0.80, 0.82, 0.84, 0.81, 0.83, 0.82, 0.80, 0.84, 0.82, 0.82]
    assert ladder.accuracy([0.82, 0.81, 0.83, 0.82, 0.82], reference).status == "agrees"
    finding = ladder.accuracy([0.78, 0.77, 0.79, 0.78, 0.78], reference)
    assert finding.status == "differs"
    assert "5 seeds average 78.00%, the reference 82.00%: not shown to be equivalent" in finding.message
