"""What NEW says about a model is compared with what OLD says, and the difference is named."""

from pathlib import Path

import pytest

from stele.measuring.worker import WorkerError
from stele.subjects import Comparison
from stele.subjects.errors import SubjectError
from stele.subjects.model import inspection
from stele.subjects.model.comparison import ask_new, compare
from stele.subjects.model.inputs import Input
from stele.subjects.model.inspection import Built, Inspection, ModelArray, Output
from stele.subjects.model.spec import Model

IDS = Input("ids", "int", (2, 9), 64, "int64")
TYPES = Input("token_type_ids", "int", (2, 9), 2, "int64")


def built(*arrays, tied=(), training=True):
    return Built(
        tuple(ModelArray(name, shape, dtype, parameter) for name, shape, dtype, parameter in arrays),
        tied,
        training,
    )


WEIGHT, HEAD = ("embed.weight", (8, 4), "float32", True), ("head.weight", (8, 4), "float32", True)
COUNT = ("norm.count", (), "int64", False)
OLD = Inspection("torch", (IDS, TYPES), None, 64, True, "squared", "", built=built(WEIGHT, HEAD, COUNT), output=(2, 3))


def differences(new=OLD, old=OLD, training=True, **changes):
    return list(compare(old, new._replace(**changes), training=training).differences)


def renamed(**changes):
    return compare(OLD, OLD._replace(**changes), training=True).renamed


def test_equal_models_do_not_differ():
    assert differences() == []
    assert not renamed()


INPUTS = [
    ((IDS,), "token_type_ids is missing in NEW: its inputs are ids, OLD's ids, token_type_ids"),
    ((IDS, TYPES, TYPES._replace(name="pos")), "pos is an input in NEW and not in OLD"),
    ((IDS._replace(dtype="int32"), TYPES), "ids has dtype int32 in NEW, int64 in OLD"),
    ((IDS._replace(shape=(2, 8)), TYPES), "ids has shape 2x8 in NEW, 2x9 in OLD"),
    ((IDS._replace(kind="mask"), TYPES), "ids has kind mask in NEW, int in OLD"),
]


@pytest.mark.parametrize(("inputs", "message"), INPUTS)
def test_an_input_that_differs_is_named(inputs, message):
    [found] = differences(inputs=inputs)
    assert found.startswith(message)


def test_the_order_of_named_inputs_and_their_largest_number_do_not_count():
    assert differences(inputs=(TYPES, IDS._replace(high=60))) == []


def test_inputs_without_names_are_compared_by_their_place():
    old, new = (OLD._replace(inputs=(Input(None, "float", shape, None, "float32"),)) for shape in ((2, 3), (2, 4)))
    assert differences(new, old) == ["input 1 has shape 2x4 in NEW, 2x3 in OLD"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            [("embed.weight", (8, 4), "float16", True), HEAD, COUNT],
            "float16 in NEW, float32 in OLD (embed.weight)",
        ),
        ([("e", (16, 4), "bfloat16", True)], "the parameters are bfloat16 in NEW, float32, int64 in OLD"),
        ([WEIGHT, HEAD, ("norm.count", (), "int32", False)], "int32 in NEW, int64 in OLD (norm.count)"),
    ],
)
def test_a_dtype_that_differs_is_named_with_the_parameters(arrays, message):
    assert differences(built=built(*arrays)) == [message]


def test_of_many_parameters_the_first_are_named():
    names = [f"layer.{number}.weight" for number in range(5)]
    old, new = (
        OLD._replace(built=built(*((name, (2,), dtype, True) for name in names))) for dtype in ("float32", "float16")
    )
    assert differences(new, old) == [
        "float16 in NEW, float32 in OLD (layer.0.weight, layer.1.weight, layer.2.weight and 2 more)"
    ]


TIED = built(WEIGHT, HEAD, COUNT, tied=(("embed.weight", "head.weight"),))


def test_tensors_that_are_tied_in_one_arm_alone_are_named():
    message = "embed.weight and head.weight are one tensor in {}, two in {}"
    assert differences(old=OLD._replace(built=TIED)) == [message.format("OLD", "NEW")]
    assert differences(built=TIED) == [message.format("NEW", "OLD")]
    assert differences(OLD._replace(built=TIED), OLD._replace(built=TIED)) == []


def test_a_group_of_three_that_is_split_is_counted():
    arrays = [(name, (2,), "float32", True) for name in "abc"]
    old = OLD._replace(built=built(*arrays, tied=(("a", "b", "c"),)))
    new = OLD._replace(built=built(*arrays, tied=(("a", "b"),)))
    assert differences(new, old) == ["a, b and c are one tensor in OLD, two in NEW"]
    new = OLD._replace(built=built(*arrays))
    assert differences(new, old) == ["a, b and c are one tensor in OLD, 3 in NEW"]


def test_a_tied_name_that_is_gone_is_only_another_name():
    old, new = OLD._replace(built=TIED), OLD._replace(built=built(WEIGHT, COUNT))
    assert differences(new, old) == []
    assert compare(old, new, training=True).renamed


def test_the_mode_after_construction_is_compared():
    assert differences(built=OLD.built._replace(training=False)) == [
        "the model is built in evaluation mode in NEW, in training mode in OLD"
    ]
    assert differences(built=OLD.built._replace(training=None)) == []  # no mode


def test_the_loss_and_the_target_count_in_training_alone():
    target = {"name": "labels", "kind": "int", "shape": [2], "high": 3}
    assert differences(loss="own") == ["the loss is own in NEW, squared in OLD"]
    assert differences(target=target) == ["the target is labels=int:2:3 in NEW, absent in OLD"]
    assert differences(loss="own", target=target, training=False) == []


def test_a_model_of_another_size_differs_and_one_with_other_names_does_not():
    larger = built(("embed.weight", (9, 4), "float32", True), HEAD, COUNT)
    assert differences(built=larger, parameters=68) == ["embed.weight has shape 9x4 in NEW, 8x4 in OLD"]
    fused = built(("both.weight", (16, 4), "float32", True), COUNT)
    assert differences(built=fused) == []
    assert renamed(built=fused)
    assert differences(built=fused, parameters=65) == []  # with what is not trained
    turned = built(("embed.weight", (4, 8), "float32", True), HEAD, COUNT)
    assert differences(built=turned) == []  # the same numbers in another layout
    assert renamed(built=turned)


BIAS, OTHER_BIAS = ("bias", (8,), "float32", True), ("shift", (8,), "float32", True)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ((WEIGHT, BIAS), (WEIGHT,), "the parameters have 32 numbers in NEW, 40 in OLD; NEW lacks bias"),
        ((WEIGHT,), (WEIGHT, BIAS), "the parameters have 40 numbers in NEW, 32 in OLD; OLD lacks bias"),
        (
            (WEIGHT, HEAD),
            (WEIGHT, BIAS),
            "40 numbers in NEW, 64 in OLD; NEW lacks head.weight; OLD lacks bias",
        ),
        ((WEIGHT, BIAS), (WEIGHT, (*BIAS[:3], False)), "32 numbers in NEW, 40 in OLD; NEW lacks bias"),
    ],
)
def test_a_parameter_that_one_arm_lacks_is_named(old, new, message):
    arms = [OLD._replace(built=built(*arrays)) for arrays in (old, new)]
    [found] = differences(arms[1], arms[0], training=False)
    assert message in found


def test_a_parameter_with_another_name_is_renamed_and_without_names_the_numbers_are_counted():
    old, new = OLD._replace(built=built(WEIGHT, BIAS)), OLD._replace(built=built(WEIGHT, OTHER_BIAS))
    assert differences(new, old) == []
    assert compare(old, new, training=True).renamed
    unknown = OLD._replace(built=Built())
    assert differences(unknown, unknown, parameters=63) == ["the parameters have 63 numbers in NEW, 64 in OLD"]


def test_buffers_that_one_arm_lacks_do_not_count():
    assert differences(built=built(WEIGHT, HEAD)) == []
    assert not renamed(built=built(WEIGHT, HEAD))


def test_the_shape_of_the_output_is_compared():
    assert differences(output=(2, 8)) == ["the output has shape 2x8 in NEW, 2x3 in OLD"]


TWO = (Output("logits", (2, 3), "float32"), Output("boxes", (2, 4), "float32"))
ONLY = (Output("", (2, 3), "float32"),)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (TWO, TWO[:1], "the output boxes is missing in NEW: it returns logits, OLD logits, boxes"),
        (TWO[:1], TWO, "the output boxes is in NEW and not in OLD: it returns logits, boxes, OLD logits"),
        (TWO, (TWO[0], TWO[1]._replace(shape=(2, 5))), "the output boxes has shape 2x5 in NEW, 2x4 in OLD"),
        (
            TWO,
            (TWO[0]._replace(dtype="float16"), TWO[1]),
            "the output logits has dtype float16 in NEW, float32 in OLD",
        ),
        (ONLY, (ONLY[0]._replace(shape=()),), "the output has shape () in NEW, 2x3 in OLD"),
    ],
)
def test_each_output_is_compared_by_name(old, new, message):
    assert differences(OLD._replace(outputs=new), OLD._replace(outputs=old)) == [message]
    assert differences(OLD._replace(outputs=old), OLD._replace(outputs=old)) == []


def test_an_arm_that_says_less_is_compared_as_far_as_possible():
    assert differences(built=Built(), output=None) == []
    assert not renamed(built=Built())


class Arms:
    """Answers of OLD and NEW in the order in which they are asked; an exception is raised."""

    def __init__(self, monkeypatch, **answers):
        self.answers, self.asked = {name: list(values) for name, values in answers.items()}, []
        monkeypatch.setattr(inspection, "inspect", self.inspect)

    def inspect(self, environment, model, *, timeout):
        self.asked.append((environment, model.inputs))
        answer = self.answers[environment].pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def compare(self, old=OLD):
        model = Model("net.py:build", Path("/"))
        return ask_new("old", "new", model, old, training=True, timeout=9)[0]


FAILED, OTHER = SubjectError("net.py raised ImportError"), OLD._replace(inputs=(IDS,))


def test_an_arm_that_agrees_is_asked_once(monkeypatch):
    arms = Arms(monkeypatch, new=[OLD])
    assert arms.compare() == Comparison()
    assert len(arms.asked) == 1


@pytest.mark.parametrize(("answer", "failure"), [(FAILED, str(FAILED)), (OTHER, None)])
def test_a_failure_or_a_difference_is_looked_at_twice_in_both_arms(monkeypatch, answer, failure):
    arms = Arms(monkeypatch, old=[OLD], new=[answer, answer])
    found = arms.compare()
    assert found.failure == failure
    assert bool(found.differences) == (failure is None)
    assert [name for name, _ in arms.asked] == ["new", "old", "new"]


@pytest.mark.parametrize("answer", [FAILED, WorkerError("crashed"), OTHER])
def test_what_happens_once_is_not_of_new(monkeypatch, answer):
    assert Arms(monkeypatch, old=[OLD], new=[answer, OLD]).compare() == Comparison()


def failing(*messages):
    return [SubjectError(message) for message in messages]


def reported(text):
    return WorkerError(text, kind="ValueError", message="x")


CRASHES = [WorkerError("killed by SIGSEGV")] * 4


@pytest.mark.parametrize(
    ("answers", "failure", "asked"),
    [
        (failing("a", "a"), "a", 2),
        (failing("a", "b", "b"), "b", 3),
        (failing("a", "b", "a", "b"), "b", 4),
        (CRASHES, "killed by SIGSEGV", 4),
        ([reported("log 1"), reported("log 2")], "log 2", 2),
        ([*CRASHES[:3], OLD], None, 4),
        ([*failing("a", "b", "c"), OLD], None, 4),
        ([OTHER, FAILED, OTHER, OTHER], None, 4),
    ],
)  # fmt: skip
def test_failures_count_if_two_are_the_same_exception_or_four_are_any(monkeypatch, answers, failure, asked):
    arms = Arms(monkeypatch, old=[OLD] * 3, new=answers)
    found = arms.compare()
    assert found.failure == failure
    assert bool(found.differences) == (answers[-1] is OTHER)
    assert [name for name, _ in arms.asked].count("new") == asked
    assert [name for name, _ in arms.asked].count("old") == asked - 1


def test_two_differences_count_if_they_have_one_in_common(monkeypatch):
    other, third = OLD._replace(output=(2, 8)), OLD._replace(output=(2, 9))
    assert Arms(monkeypatch, old=[OLD] * 3, new=[other, third, OLD]).compare() == Comparison()
    assert Arms(monkeypatch, old=[OLD] * 3, new=[other, third, third]).compare().differences


def test_an_old_arm_that_fails_the_second_time_is_no_difference_of_new(monkeypatch):
    with pytest.raises(SubjectError, match="ImportError"):
        Arms(monkeypatch, old=[FAILED], new=[FAILED]).compare()


def test_a_model_that_is_another_one_in_each_process_is_refused(monkeypatch):
    message = "another model in each process of OLD: token_type_ids is missing in the second process.*Seed it"
    with pytest.raises(SubjectError, match=message):
        Arms(monkeypatch, old=[OTHER], new=[OTHER]).compare()


@pytest.mark.parametrize(
    ("origin", "given"), [("example_inputs()", None), ("the first layer", OLD.inputs), (None, OLD.inputs)]
)
def test_inputs_that_stele_infers_are_those_of_old_and_a_function_is_called_in_both(monkeypatch, origin, given):
    arms = Arms(monkeypatch, new=[OLD])
    arms.compare(OLD._replace(inferred_from=origin))
    assert arms.asked == [("new", given)]
