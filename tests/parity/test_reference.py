"""NEW's answers are compared with OLD's within the rounding of OLD, and the first difference is named."""

import math

import pytest

from stele.parity import ladder, reference
from stele.parity.reference import Precision, Rounding
from stele_worker.sketch import sketch

OLD = {
    "unequal": {},
    "layers": {"conv": [2.0, 1.0, 1.0], "norm": [3.0, 1.0, 1.0], "head": [1.0, 0.5, 0.5]},
    "logits": [[1.0, 2.0]],
    "repeats": True,
    "tracked": False,
    "norms": {"w": 1.0, "b": 0.0},
    "loss": 2.3,
    "gradients": {"w": [1.0, 0.5, 0.5], "b": [0.1, 0.05, 0.05]},
    "updates": {
        "1": {"w": [0.01, 0.005, 0.005], "b": [0.001, 0.0005, 0.0005]},
        "10": {"w": [0.1, 0.05, 0.05], "b": [0.01, 0.005, 0.005]},
    },
    "losses": [2.3, 2.2],
}
EXACT = Rounding({"2 threads": {}})
ZERO = {**OLD, "gradients": {"w": [1.0, 0.5, 0.5], "b": [1e-9, 4e-10, -3e-10]}}


def first_difference(new=None, old=OLD, rounding=EXACT, **changes):
    return ladder.first_difference(reference.findings({**(new or old), **changes}, old, rounding))


def gradients(**changes):
    return {**OLD["gradients"], **changes}


def layers(**changes):
    return {**OLD["layers"], **changes}


def rounding(change="2 threads", old=OLD, precision="fp32", **changes):
    return reference.measure_rounding({change: {**old, **changes}}, old, precision=precision)


def test_equal_answers_agree_on_every_rung():
    found = reference.findings(OLD, OLD, EXACT)
    assert [(finding.rung, finding.status) for finding in found] == [(n, "agrees") for n in range(1, 9)]


def test_inference_alone_is_compared_without_the_rungs_of_training():
    old = {name: OLD[name] for name in ("unequal", "layers", "logits", "repeats", "tracked")}
    found = reference.findings(old, old, EXACT)
    assert [finding.rung for finding in found] == [1, 2, 3, 8]


DIFFERENCES = [
    ({"layers": layers(norm=[3.0, 1.0, 1.3])}, 2, "output of norm: relative error 0.1, tolerance 1e-05"),
    ({"logits": [[1.0, 2.2]]}, 3, "relative error 0.1, tolerance 1e-05"),
    ({"loss": 2.53}, 4, "relative error 0.1, tolerance 1e-05"),
    ({"gradients": gradients(w=[1.0, 0.5, 0.6])}, 5, "gradient of w: relative error 0.1, tolerance 0.0001"),
    ({"losses": [2.3, 2.42]}, 7, "step 2: relative error 0.1, tolerance 0.0001"),
]


@pytest.mark.parametrize("changes, rung, message", DIFFERENCES)
def test_a_difference_has_its_rung_the_quantity_and_the_tolerance(changes, rung, message):
    finding = first_difference(**changes)
    assert (finding.rung, finding.message) == (rung, message)


def test_the_first_layer_that_differs_is_named_not_the_one_with_the_largest_error():
    finding = first_difference(layers=layers(norm=[3.0, 1.0, 1.1], head=[9.0, 0.5, 0.5]))
    assert finding.where == "norm"


def test_layers_that_only_one_side_has_are_not_compared():
    new = {"conv": OLD["layers"]["conv"], "norm.new": [7.0, 7.0, 7.0]}
    assert first_difference(layers=new) is None
    assert first_difference(layers={"renamed": [1.0, 1.0, 1.0]}) is None
    assert first_difference(layers=None) is None


def test_later_updates_may_differ_more_and_the_message_has_the_error_itself():
    def with_update(steps, by):
        changed = {**OLD["updates"][steps], "w": [norm * (1 + by) for norm in OLD["updates"][steps]["w"]]}
        return first_difference(updates={**OLD["updates"], steps: changed})

    assert with_update("1", 0.005).where == "w after step 1"
    assert with_update("10", 0.005) is None
    assert with_update("10", 0.5).message == "update of w after step 10: relative error 0.5, tolerance 0.01"


def test_each_quantity_may_differ_by_ten_times_its_own_rounding():
    measured = rounding(gradients=gradients(b=[0.1, 0.05, 0.0505]))
    assert measured.of(5, "b") == pytest.approx(0.005, rel=0.01)
    assert first_difference(rounding=measured, gradients=gradients(b=[0.1, 0.05, 0.054])) is None
    assert first_difference(rounding=measured, gradients=gradients(b=[0.1, 0.05, 0.056])).where == "b"
    assert first_difference(rounding=measured, gradients=gradients(w=[1.0, 0.5, 0.51])).where == "w"


def test_the_rounding_is_the_largest_of_all_changes():
    changes = {
        "2 threads": {**OLD, "loss": 2.3 * (1 + 1e-6)},
        "the batch reversed": {**OLD, "loss": 2.3 * (1 + 3e-6)},
    }
    measured = reference.measure_rounding(changes, OLD, precision="fp32")
    assert measured.of(4, "") == pytest.approx(3e-6)
    assert measured.message() == "Rounding in OLD: 1.0e-06 with 2 threads, 3.0e-06 with the batch reversed"


def test_a_change_that_changes_the_results_is_not_rounding():
    changes = {"2 threads": OLD, "the batch reversed": {**OLD, "logits": [[2.0, 1.0]]}}
    measured = reference.measure_rounding(changes, OLD, precision="fp32")
    assert measured.unusable == ("the batch reversed",)
    assert reference.doubt(OLD, measured) is None
    assert "unknown with the batch reversed, because OLD's results change" in measured.message()
    assert first_difference(rounding=measured, logits=[[1.0, 2.2]]).rung == 3


@pytest.mark.parametrize(
    ("precision", "dtype", "change", "limit"),
    [
        ("fp32", "float32", 5e-4, 5e-3),
        ("fp32", "float32", 9e-4, 9e-3),
        ("fp32", "bfloat16", 2e-2, 2e-1),
        ("fp32", "float16", 5e-3, 5e-2),
        ("tf32", "float32", 5e-3, 5e-2),
        ("tf32", "bfloat16", 2e-2, 2e-1),
    ],
)
def test_rounding_has_a_limit_above_which_a_change_is_no_rounding(precision, dtype, change, limit):
    def measured(change):
        changes = {"2 threads": {**OLD, "logits": [[1.0, 2.0 * (1 + change)]]}}
        return reference.measure_rounding(changes, {**OLD, **dtypes(others=[dtype])}, precision=precision)

    assert measured(change).limit(3, "") == pytest.approx(limit, rel=1e-3)
    assert measured(100 * change).unusable == ("2 threads",)


def dtypes(**changes):
    return {"dtypes": {"parameters": {}, "layers": {}, "others": [], **changes}}


LIMITS = [
    (2, "conv", 0.01),
    (3, "", 0.01),
    (4, "", 0.01),
    (5, "b", 0.1),
    (6, "b after step 1", 0.1),
    (6, "b after step 10", 0.1),
    (7, "step 2", 0.1),
]


@pytest.mark.parametrize(("rung", "where", "limit"), LIMITS)
def test_in_fp32_each_quantity_has_a_limit_whatever_the_rounding(rung, where, limit):
    at_most = Rounding({"2 threads": {rung: {where: limit / 10}}})
    assert at_most.limit(rung, where) == pytest.approx(limit)
    assert not at_most.hides(rung, where)
    assert Rounding({"2 threads": {rung: {where: limit / 9}}}).hides(rung, where)


NOISY = rounding(gradients=gradients(b=[0.1, 0.05, -0.05]))


def test_a_quantity_in_which_old_differs_from_itself_is_left_out_and_it_is_said():
    """Such as the gradient of a bias before batch normalisation, and what Adam makes of it."""
    new = {**OLD, "gradients": gradients(b=[0.3, 0.05, 0.05])}
    new["updates"] = {steps: {**of_step, "b": [9.0, 9.0, 9.0]} for steps, of_step in OLD["updates"].items()}
    assert first_difference(new, rounding=NOISY) is None
    assert reference.left_out(new, OLD, NOISY) == (
        "Not compared, because rounding decides it in OLD: gradient of b, update of b after step 1, "
        "update of b after step 10"
    )
    assert first_difference(new, rounding=NOISY, gradients=gradients(w=[1.0, 0.5, 0.6])).where == "w"
    assert reference.left_out(new, OLD, EXACT) is None


def test_what_a_second_process_does_not_repeat_is_left_out():
    old = {
        **OLD,
        "updates": {"1": {**OLD["updates"]["1"], "seed": [7.0, 7.0, 7.0]}, "10": OLD["updates"]["10"]},
    }
    again = {**old, "updates": {**old["updates"], "1": {**old["updates"]["1"], "seed": [3.0, 3.0, 3.0]}}}
    measured = reference.measure_rounding({"2 threads": old}, old, precision="fp32", again=again)
    assert first_difference(again, old=old, rounding=measured) is None
    assert "update of seed after step 1" in reference.left_out(again, old, measured)
    repeated = reference.measure_rounding({"2 threads": old}, old, precision="fp32", again=old)
    assert first_difference(again, old=old, rounding=repeated).where == "seed after step 1"


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"gradients": {"w": [1.0, 0.5, -0.5], "b": [0.1, 0.05, -0.05]}}, "gradients and updates"),
        ({"losses": [2.0, 2.0]}, "losses"),
        ({"layers": {name: [9.0, 9.0, 9.0] for name in OLD["layers"]}}, "layers"),
    ],
)
def test_if_nothing_of_a_rung_has_a_reference_there_is_no_verdict(changes, what):
    measured = rounding(**changes)
    found = reference.findings(OLD, OLD, measured)
    assert ladder.first_difference(found) is None
    assert reference.doubt(OLD, measured, found) == f"OLD differs from itself in all {what}"


def test_the_update_by_a_gradient_of_rounding_alone_is_not_compared():
    """Adam divides a gradient by its size, whatever that is."""
    updates = {steps: {**of_step, "b": [-0.01, 0.0, 0.0]} for steps, of_step in ZERO["updates"].items()}
    new = {**ZERO, "gradients": {**ZERO["gradients"], "b": [2e-9, 1e-9, 1e-9]}, "updates": updates}
    assert first_difference(new, old=ZERO) is None
    assert reference.left_out(new, ZERO, EXACT).endswith("decides it in OLD: update of b")
    exact = {**OLD, "gradients": gradients(b=[0.0, 0.0, 0.0])}  # moved by weight decay
    assert first_difference(old=exact, updates=updates).where == "b after step 1"
    above = {**OLD, "gradients": gradients(b=[1e-5, 0.0, 0.0])}
    assert first_difference(old=above, updates=updates).where == "b after step 1"


STATE = {"1.running_mean": [0.5, 0.2, 0.2], "1.running_var": [0.9, 0.4, 0.4], "1.count": [1.0, 1.0, 1.0]}
WITH_STATE = {
    **OLD,
    "norms": {**OLD["norms"], "1.running_mean": 0.0, "1.running_var": 4.0, "1.count": 0.0},
    "updates": {steps: {**of_step, **STATE} for steps, of_step in OLD["updates"].items()},
    "trained": [[3.0, 4.0]],
}


def with_state(steps="1", **changes):
    return {**WITH_STATE["updates"], steps: {**WITH_STATE["updates"][steps], **changes}}


@pytest.mark.parametrize("steps", ["1", "10"])
@pytest.mark.parametrize(
    ("name", "sketch_of_new"),
    [
        ("1.running_mean", [0.45, 0.18, 0.18]),
        ("1.running_var", [0.95, 0.42, 0.42]),
        ("1.count", [0.0, 0.0, 0.0]),
        ("1.running_var", [None, None, None]),
    ],
)
def test_state_that_no_gradient_reaches_is_compared(steps, name, sketch_of_new):
    assert first_difference(old=WITH_STATE) is None
    finding = first_difference(old=WITH_STATE, updates=with_state(steps, **{name: sketch_of_new}))
    assert (finding.rung, finding.where) == (6, f"{name} after step {steps}")


def test_a_mean_that_is_zero_except_for_rounding_may_have_other_rounding():
    old = {**WITH_STATE, "updates": with_state(**{"1.running_mean": [1e-8, 4e-9, 4e-9]})}
    assert first_difference(old=old, updates=with_state(**{"1.running_mean": [3e-8, -9e-9, 1e-9]})) is None


def test_state_of_one_arm_alone_or_that_is_not_finite_in_old_hides_nothing_else():
    lacking = {
        steps: {name: one for name, one in of_step.items() if name != "1.count"}
        for steps, of_step in WITH_STATE["updates"].items()
    }
    assert first_difference(old=WITH_STATE, updates=lacking) is None
    assert first_difference(old={**WITH_STATE, "updates": lacking}, updates=WITH_STATE["updates"]) is None
    old = {**WITH_STATE, "updates": with_state(**{"1.count": [None, None, None]})}
    assert first_difference(old=old) is None
    moved = {**old["updates"]["1"], "1.running_mean": [0.4, 0.1, 0.1]}
    assert first_difference(old=old, updates={**old["updates"], "1": moved}).where == "1.running_mean after step 1"


@pytest.mark.parametrize("trained", [[[3.0, 4.1]], None, [[3.0, None]], [[3.0, 4.0, 5.0]]])
def test_the_inference_of_the_trained_model_is_compared(trained):
    finding = first_difference(old=WITH_STATE, trained=trained)
    assert (finding.rung, finding.where) == (7, "inference after step 2")


LAYERS = {"conv": "float32", "norm": "bfloat16", "head": "float32"}


@pytest.mark.parametrize(
    ("facts", "layers_", "narrowest"),
    [
        (dtypes(), {}, "fp32"),
        (dtypes(others=["float32", "int64"]), {}, "fp32"),
        (dtypes(parameters={"w": "float16"}), {}, "tf32"),
        (dtypes(others=["bfloat16"]), {}, "bf16"),
        (dtypes(parameters={"w": "float16"}, others=["bfloat16"]), {}, "bf16"),
        (dtypes(layers=LAYERS), {"conv": "fp32", "norm": "bf16", "head": "bf16"}, "bf16"),
        ({}, {}, "fp32"),
    ],
)
def test_the_tolerances_follow_the_dtypes_in_which_old_computes(facts, layers_, narrowest):
    found = reference.precision_of({**OLD, **facts}, "fp32")
    assert (found.narrowest, dict(found.layers)) == (narrowest, layers_)


def test_a_model_that_computes_in_half_precision_may_differ_by_its_rounding_and_layers_before_it_may_not():
    old = {**OLD, **dtypes(layers=LAYERS)}
    measured = reference.measure_rounding({"2 threads": {**old, "logits": [[1.0, 2.01]]}}, old, precision="fp32")
    assert measured.unusable == ()
    new = {**old, "layers": layers(norm=[3.0, 1.0, 1.06]), "logits": [[1.0, 2.02]], "loss": 2.31}
    assert first_difference(new, old=old, rounding=measured) is None
    assert first_difference(old=old, rounding=measured, layers=layers(conv=[2.0, 1.0, 1.01])).where == "conv"
    assert first_difference(old=old, rounding=measured, logits=[[1.0, 2.6]]).rung == 3


def test_no_tolerance_is_above_a_half():
    measured = Rounding({"2 threads": {5: {"b": 0.14}}}, precision=Precision("bf16"))
    assert measured.limit(5, "b") == measured.limit(6, "b after step 10") == 0.5


def test_the_rounding_of_a_parameter_that_is_stored_in_half_precision_is_no_difference_of_an_update():
    """A bfloat16 of norm 1 that is updated by 0.01 is stored with an error of 4e-3."""
    old = {**OLD, **dtypes(parameters={"w": "bfloat16"})}
    measured = reference.measure_rounding({"2 threads": old}, old, precision="fp32")
    new = {**OLD["updates"], "1": {**OLD["updates"]["1"], "w": [0.006, 0.002, 0.002]}}
    assert first_difference(old=old, rounding=measured, updates=new) is None


@pytest.mark.parametrize(
    ("own", "new", "found", "random"),
    [
        ({"input 1": 0.3, "ids": 0.0}, {"input 1": 0.3, "ids": 0.2}, ["ids"], "input 1"),
        ({"input 1": 0.0, "ids": 0.0}, {"input 1": 0.3, "ids": 0.2}, ["input 1", "ids"], None),
        ({"input 1": 0.0, "ids": 0.1}, {"input 1": None, "ids": 0.2}, ["input 1"], "ids"),
        ({"input 1": None, "ids": 0.1}, {"input 1": None, "ids": 0.2}, [], "ids and 1 more"),
        ({"input 1": 0.0, "ids": 0.0}, {"input 1": 0.0, "ids": 1e-18}, ["ids"], None),
        ({"input 1": 0.0, "ids": 0.0}, {"input 1": 0.0, "ids": 0.0}, [], None),
    ],
)
def test_each_input_is_compared_unless_old_returns_other_values_of_it(own, new, found, random):
    differences, said = reference.input_differences({"inputs": new}, {"inputs": own})
    assert [one.split(" has other values")[0] for one in differences] == found
    assert said == (
        [f"example_inputs() returns other values of {random} in each process, so both arms compute with OLD's"]
        if random
        else []
    )


def test_old_is_no_reference_if_every_change_changes_its_results():
    measured = rounding(logits=[[2.0, 1.0]])
    assert reference.doubt(OLD, measured) == "OLD differs from itself with 2 threads"


def test_rounding_that_is_not_finite_allows_nothing():
    measured = rounding(gradients=gradients(w=None))
    assert measured.of(5, "w") == 0
    assert first_difference(rounding=measured, gradients=gradients(w=[1.0, 0.5, 0.6])).where == "w"


def test_a_gradient_that_is_zero_except_for_rounding_may_have_other_rounding():
    assert first_difference(old=ZERO, gradients={**ZERO["gradients"], "b": [3e-9, -9e-10, 1e-9]}) is None
    exact = {**OLD, "gradients": gradients(b=[0.0, 0.0, 0.0])}
    assert first_difference(old=exact, gradients=gradients(b=[1e-9, 4e-10, 3e-10])) is None


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_gradient_that_was_zero_and_is_not_now_differs(precision):
    measured = Rounding({"2 threads": {}}, precision=Precision(precision))
    finding = first_difference(old=ZERO, rounding=measured, gradients={**ZERO["gradients"], "b": [0.5, 0.2, 0.2]})
    assert (finding.rung, finding.where) == (5, "b")


def test_the_rounding_of_a_stored_parameter_is_no_difference_of_an_update():
    """A parameter of norm 100 that is updated by 0.01 is stored with an error of 6e-6."""
    old = {**OLD, "norms": {"w": 100.0, "b": 0.0}}
    new = {**OLD["updates"], "1": {**OLD["updates"]["1"], "w": [0.01, 0.005, 0.005 + 5e-6]}}
    assert first_difference(old=old, updates=new) is None
    assert first_difference(updates=new).where == "w after step 1"


def test_a_frozen_model_has_no_gradients_to_compare():
    old = {**OLD, "gradients": {}, "updates": {"1": {}, "10": {}}, "norms": {}}
    assert first_difference(old=old) is None


MISSING = "not finite, of another shape, or missing on one side"
INCOMPARABLE = [
    ({"gradients": {"w": OLD["gradients"]["w"]}}, 5, f"gradient of b: {MISSING}"),
    ({"gradients": gradients(c=[1.0, 0.5, 0.5])}, 5, f"gradient of c: {MISSING}"),
    ({"gradients": gradients(b=[None, None, None])}, 5, f"gradient of b: {MISSING}"),
    ({"updates": {"1": OLD["updates"]["1"]}}, 6, f"update of w after step 10: {MISSING}"),
    ({"layers": layers(norm=[None, None, None])}, 2, f"output of norm: {MISSING}"),
    ({"logits": [[1.0, None]]}, 3, MISSING),
    ({"logits": [[1.0, 2.0, 3.0]]}, 3, MISSING),
    ({"loss": math.nan}, 4, MISSING),
    ({"loss": None}, 4, MISSING),
    ({"losses": [2.3, None]}, 7, f"step 2: {MISSING}"),
]


@pytest.mark.parametrize("changes, rung, message", INCOMPARABLE)
def test_numbers_that_are_missing_or_not_finite_in_new_differ(changes, rung, message):
    finding = first_difference(**changes)
    assert (finding.rung, finding.message) == (rung, message)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"logits": [[1.0, None]]}, "the logits of OLD are not finite"),
        ({"loss": None}, "the loss of OLD is not finite"),
        ({"gradients": gradients(w=[None, None, None])}, "the gradients of OLD are not finite"),
        ({"losses": [2.3, None]}, "the losses of OLD are not finite"),
        ({"trained": [[None]]}, "the logits of OLD after its training are not finite"),
    ],
)
def test_old_is_no_reference_if_its_numbers_are_not_finite(changes, message):
    old = {**OLD, **changes}
    assert reference.doubt(old, rounding(old=old)) == message
    assert first_difference(old=old) is None


def test_a_layer_that_is_not_finite_in_old_is_not_compared():
    old = {**OLD, "layers": layers(conv=[None, None, None])}
    assert reference.doubt(old, EXACT) is None
    assert first_difference(old=old) is None
    assert first_difference(old=old, layers={**old["layers"], "norm": [3.0, 1.0, 1.3]}).where == "norm"


def test_renamed_parameters_are_compared_in_their_order():
    names = {"w": "dense_1/kernel", "b": "dense_1/bias"}

    def renamed(values):
        return {names[name]: value for name, value in values.items()}

    new = {
        **OLD,
        "gradients": renamed(OLD["gradients"]),
        "updates": {steps: renamed(values) for steps, values in OLD["updates"].items()},
    }
    assert first_difference(new) is None
    changed = {**new["gradients"], "dense_1/bias": [0.1, 0.05, 0.06]}
    assert first_difference(new, gradients=changed).where == "b"


def test_outputs_that_are_zero_in_old_must_be_zero_in_new():
    old = {**OLD, "logits": [[0.0, 0.0]], "losses": [2.3, 0.0]}
    assert first_difference(old=old) is None
    assert first_difference(old=old, logits=[[0.0, 0.1]]).rung == 3
    assert first_difference(old=old, losses=[2.3, 0.1]).where == "step 2"


def test_large_outputs_are_compared_by_their_sketches():
    values = [math.sin(number) for number in range(5000)]
    old = {**OLD, "logits": sketch(values)}
    assert first_difference(old=old, logits=sketch([value * (1 + 1e-7) for value in values])) is None
    assert first_difference(old=old, logits=sketch([value * (1 + 1e-3) for value in values])).rung == 3
    assert first_difference(old=old, logits=sketch(values[::-1])).rung == 3
    assert first_difference(old=old, logits=[values[:10]]).message == MISSING


def test_outputs_of_two_calls_that_differ_are_not_compared_with_old():
    """The first layer that differs from OLD is probably the dropout that was left on."""
    finding = first_difference(repeats=False, layers=layers(norm=[3.0, 1.0, 2.0]), logits=[[5.0, 5.0]], loss=9.0)
    assert (finding.rung, finding.where) == (8, "norm")
    assert finding.message == (
        "two calls on one batch differ. Check that dropout is off. The first layer that differs from OLD is norm."
    )
    assert first_difference(repeats=False).message == "two calls on one batch differ. Check that dropout is off."


def test_weights_that_differ_come_before_everything_else():
    facts = {"differ": 3, "of": 9, "order": False, "deviation": 0.1, "expected": 0.1, "rounded": "bfloat16"}
    finding = first_difference(unequal={"conv.weight": facts}, repeats=False, loss=9.0)
    assert (finding.rung, finding.where) == (1, "conv.weight")
    assert finding.message == "conv.weight: read back rounded to bfloat16. Check the default dtype."


def test_the_summary_names_the_quantity_nearest_to_its_tolerance():
    new = {**OLD, "gradients": gradients(b=[0.1, 0.05, 0.050005])}
    found = reference.findings(new, OLD, EXACT)
    assert reference.summary(found) == "largest relative error 4.0e-05 (gradients, b; tolerance 1e-04)"


def several(numbers=((0.5, 1.0),), shape=(1, 2), **others):
    return {**OLD, "outputs": {"boxes": {"shape": list(shape), "numbers": numbers}, **others}}


BOXES = {"shape": [1], "numbers": [3.0]}


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (several([[0.5, 1.1]]), "output boxes: relative error 0.1, tolerance 1e-05"),
        (several([[0.5]], (1, 1)), "output boxes: not finite, of another shape, or missing on one side"),
        (OLD, "output boxes: not finite, of another shape, or missing on one side"),
        (several(cache=BOXES), "output cache: not finite, of another shape, or missing on one side"),
    ],
)
def test_each_output_is_compared_and_named(new, message):
    finding = first_difference(new, several())
    assert (finding.rung, finding.message) == (3, message)


def test_equal_outputs_agree_also_if_they_have_no_numbers():
    assert first_difference(several([], (0, 4)), several([], (0, 4))) is None
    assert first_difference(several(), several()) is None


def test_each_output_has_its_own_rounding_and_an_order_that_is_not_reversed_is_none():
    old = several([[0.5, 1.0]], cache=BOXES)
    small, moved = several([[0.5, 1.00001]], cache=BOXES), several(cache={"shape": [1], "numbers": [-3.0]})
    changes = {"2 threads": small, reference.REVERSED: moved}
    measured = reference.measure_rounding(changes, old, precision="fp32")
    assert list(measured.by_change) == ["2 threads", reference.REVERSED]
    assert measured.limit(3, "output boxes") == pytest.approx(1e-4, rel=0.01)
    assert measured.limit(3, "output cache") == 1e-5
    assert measured.limit(3, "") == 1e-5


def exactly(numbers, shape=()):
    return several(ids={"shape": [*shape], "numbers": numbers, "exact": True})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (exactly([200000, 200001], [2]), exactly([200001, 200001], [2])),
        (exactly([2**60], [1]), exactly([2**60 + 1], [1])),  # one float64
        (exactly([True], [1]), exactly([False], [1])),
        (exactly("a" * 64, [9, 999]), exactly("b" * 64, [9, 999])),  # hashes of many
        (exactly("'cat'"), exactly("'dog'")),
        (exactly("None"), exactly("'dog'")),
        (exactly(3), exactly(4)),
    ],
)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_whole_numbers_and_texts_must_be_equal_in_every_precision(old, new, precision):
    measured = Rounding({"2 threads": {}}, precision=Precision(precision))
    finding = first_difference(new, old, measured)
    assert (finding.rung, finding.message) == (3, "output ids: not equal")
    assert first_difference(old, old, measured) is None


def test_whole_numbers_that_old_changes_with_its_threads_are_left_out_and_named():
    old, other, new = exactly([5, 7], [2]), exactly([5, 8], [2]), exactly([5, 9], [2])
    measured = reference.measure_rounding({"2 threads": other}, old, precision="fp32")
    assert first_difference(new, old, measured) is None
    assert reference.left_out(new, old, measured).endswith("rounding decides it in OLD: output ids")
    assert first_difference({**new, "logits": [[1.0, 2.2]]}, old, measured).message.startswith("relative")


def test_whole_numbers_that_only_another_order_of_the_batch_changes_are_compared():
    old, moved, new = exactly([5, 7], [2]), exactly([7, 5], [2]), exactly([5, 9], [2])
    measured = reference.measure_rounding({reference.REVERSED: moved}, old, precision="fp32")
    assert first_difference(new, old, measured).message == "output ids: not equal"
    assert reference.left_out(new, old, measured) is None


def test_what_cannot_be_compared_is_named_once():
    old, new = {"ignored": ["aux (Thing)"]}, {"ignored": ["aux (Thing)", "more (object)"]}
    message = "Not compared, because they are no arrays, numbers or texts: output aux (Thing), output more (object)"
    assert reference.incomparable(new, old) == message
    assert reference.incomparable({}, {"ignored": []}) is None


COUNTED = {"inference_operations": {"mm": 6, "add": 2}, "training_operations": {"mm": 18}}


@pytest.mark.parametrize(
    ("new", "again", "message"),
    [
        (COUNTED, COUNTED, "A step of inference and of training calls the same operations"),
        (
            {**COUNTED, "inference_operations": {"mm": 5, "any": 2, "add": 2}},
            COUNTED,
            "A step of inference calls 9 operations, 8 in OLD: any +2, mm -1. "
            "A step of training calls the same operations",
        ),
        (
            {"inference_operations": {**COUNTED["inference_operations"], **dict.fromkeys("abcdef", 1)}},
            COUNTED,
            "A step of inference calls 14 operations, 8 in OLD: a +1, b +1, c +1, d +1 and 2 more",
        ),
        (COUNTED, {"inference_operations": {"mm": 7}}, None),  # other ones in each process of OLD
        ({"inference_operations": None}, COUNTED, None),  # without a profiler
        ({}, {}, None),  # of an earlier record
    ],
)
def test_operations_that_a_step_calls_more_often_are_named(new, again, message):
    assert reference.operations_message(new, COUNTED, again) == message
