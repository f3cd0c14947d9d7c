"""Each rung holds where it should, and breaks at what it is there for, with the parameter in its message."""

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
WELL = {**GOLDEN, "unequal": {}, "repeats": True, "tracked": False}


def climbed(precision="fp32", task="cnn", **changes):
    return ladder.compare({**WELL, **changes}, GOLDEN, task=task, precision=precision)


def first(**changes):
    return ladder.first_difference(climbed(**changes))


def test_all_hold_where_all_is_equal():
    assert [finding.status for finding in climbed()] == ["agrees"] * 8
    assert ladder.highest_rung(climbed()) == 8


UNEQUAL = {"differ": 3, "of": 9, "order": False, "deviation": 0.1, "expected": 0.2}
BREAKS = [
    (
        1,
        {"unequal": {"conv1.weight": UNEQUAL}},
        "conv1.weight reads back .* 3 of 9 numbers differ.* initialiser",
    ),
    (
        1,
        {"unequal": {"w": {**UNEQUAL, "order": True}}},
        "in another order, so in another layout or gate order",
    ),
    (1, {"unequal": {"w": {**UNEQUAL, "deviation": None}}}, "it is missing"),
    (2, {"layers": {"conv1": [1.0, 0.5, 0.6]}}, "the output of conv1 is 0.1"),
    (3, {"logits": [[1.0, 2.2]]}, "the logits is 0.1"),
    (3, {"logits": [[1.0, None]]}, "the logits is inf"),
    (3, {"logits": [[1.0, 2.0, 3.0]]}, "the logits is inf"),
    (4, {"loss": 2.4}, "the loss at the start, 2.4 in place of 2.3"),
    (4, {"loss": math.nan}, "the loss at the start"),
    (5, {"gradients": {**GOLDEN["gradients"], "b": [1e-3, 1e-4, 2e-4]}}, "the gradient of b is 0.1"),
    (5, {"gradients": {"w": [1.0, 0.5, 0.5]}}, "the gradient of b is inf"),
    (5, {"gradients": {**GOLDEN["gradients"], "c": [0.0, 0.0, 0.0]}}, "the gradient of c is inf"),
    (6, {"updates": {"1": {"w": [0.019, 0.0095, 0.0095]}}}, "the update of w in 1 steps is"),
    (6, {"updates": {}}, "the update of w in 1 steps is inf"),
    (7, {"losses": [2.3, 2.1]}, "the loss of step 2"),
    (7, {"losses": [2.3, 2.2, 2.1]}, "3 in place of 2"),
    (8, {"repeats": False}, "two calls on one batch differ"),
    (8, {"tracked": True}, "hold on to what a gradient would need"),
]


@pytest.mark.parametrize("rung, changes, message", BREAKS)
def test_a_rung_breaks_with_its_parameter_in_the_sentence(rung, changes, message):
    finding = first(**changes)
    assert finding.rung == rung
    assert re.search(message, finding.message)
    assert ladder.highest_rung(climbed(**changes)) == rung - 1
    assert ladder.message(finding).startswith(f"broken at rung {rung}, {ladder.TITLES[rung - 1]}: ")


def test_what_storing_in_float32_rounds_off_is_no_move():
    assert first(updates={"1": {"w": [0.01, 0.005, 0.005 + 2**-24]}}) is None


def test_resnet50_and_lower_precisions_are_allowed_more():
    spoilt = {"logits": [[1.0, 2.0 + 1e-4]]}
    assert first(**spoilt).rung == 3
    assert first(task="resnet50", **spoilt) is None
    assert first(precision="bf16", **spoilt) is None


def test_of_the_layers_the_first_that_breaks_is_named_and_not_the_worst():
    golden = {**GOLDEN, "layers": {name: [1.0, 0.5, 0.5] for name in ("conv1", "conv2", "conv3")}}
    layers = {"conv1": [1.0, 0.5, 0.5], "conv2": [1.0, 0.5, 0.6], "conv3": [1.0, 0.5, 0.9]}
    findings = ladder.compare({**WELL, "layers": layers}, golden, task="cnn", precision="fp32")
    assert findings[1].where == "conv2"


def test_layers_that_a_recipe_cannot_show_are_absent_and_said_so():
    finding = climbed(layers=None)[1]
    assert (finding.status, finding.message) == ("absent", "the recipe's layers are one function")
    assert ladder.highest_rung(climbed(layers=None)) == 8


def test_only_the_rungs_that_numbers_show_are_climbed():
    numbers = {"task": "t", "logits": GOLDEN["logits"]}
    assert [finding.rung for finding in ladder.compare(numbers, GOLDEN, task="cnn", precision="fp32")] == [3]


def test_the_same_seed_gives_the_same_bits():
    answer = {"losses": [1.0, 0.9], "digest": "a"}
    assert ladder.repetition([answer, answer], promised=None) == Finding(9, "agrees", error=0.0)
    assert (
        "at the loss of step 2"
        in ladder.repetition([answer, {**answer, "losses": [1.0, 0.8]}], promised=None).message
    )
    assert "other parameters" in ladder.repetition([answer, {**answer, "digest": "b"}], promised=None).message
    assert ladder.repetition([], promised="atomics").status == "absent"


def test_a_sketch_sees_size_and_order():
    assert sketch([3.0, 4.0])[0] == 5.0
    assert sketch([1.0, 2.0, 3.0]) != sketch([3.0, 2.0, 1.0])
    assert sketch([[1.0, 2.0], [3.0, 4.0]]) == sketch([1.0, 2.0, 3.0, 4.0])


def test_accuracies_that_average_the_references_are_equivalent_and_others_are_not():
    reference = [0.80, 0.82, 0.84, 0.81, 0.83, 0.82, 0.80, 0.84, 0.82, 0.82]
    assert ladder.accuracy([0.82, 0.81, 0.83, 0.82, 0.82], reference).status == "agrees"
    finding = ladder.accuracy([0.78, 0.77, 0.79, 0.78, 0.78], reference)
    assert finding.status == "differs"
    assert "5 seeds average 78.00%, the reference 82.00%: not shown to lie within" in finding.message
