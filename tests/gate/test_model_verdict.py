"""The verdict on the parity of a model of the user, from what scripted workers compute."""

import re
from pathlib import Path

import numpy
import pytest

from stele.gate import model_verdict, record, replay
from stele.subjects import Cell, Comparison, Model
from stele.text import counted
from stele_worker import agreement
from tests.support.gates import CPU, NUMBERS, SKETCH
from tests.support.scripted_environments import INSPECTION

OTHER = {**NUMBERS, "logits": [1.0, 0.5, 0.4]}


WAYS = [
    ({"way": "names", "names": {"w": "w"}}, "PASS"),
    (
        {"way": "order", "names": {"v": "w"}},
        "1 of NEW's parameters have other names, and were matched by order and shape",
    ),
    ({"way": "checkpoint", "names": {}}, "read OLD's weights from a checkpoint that OLD's library saved"),
    ({"way": "map", "names": {"v": "w"}}, "--weights-map names 1 of NEW's parameters"),
]


@pytest.mark.parametrize(("loaded", "message"), WAYS)
def test_renamed_parameters_are_compared_and_the_way_is_said(model_gate, capsys, loaded, message):
    names = {"v": SKETCH} if "v" in loaded["names"] else dict.fromkeys(("w", "fused"), SKETCH)
    new = {**NUMBERS, "gradients": names, "updates": {"1": names, "10": names}, "weights": loaded}
    assert model_gate(new={"numbers": new}) == 0
    assert message in capsys.readouterr().out


def makes(equal=("w",), files=(), **own):
    """What an arm says of the weights that it builds itself: {parameter: error}, of 12 numbers each."""
    return {"own": own, "equal": [*equal], "sizes": dict.fromkeys(own, 12), "files": [*files]}


def partly(where):
    """As ``makes`` says it of w if only these of its 12 elements differ."""
    mask = numpy.zeros(12, bool)
    mask[where] = True
    return {**makes((), w=0.9), "places": {"w": agreement.packed(mask)}}


PARTLY = "w has other values in NEW, also where another seed does not change it"


SAME, OTHER_W = makes(), makes((), w=0.9)


FIXED = "w has other values in NEW, and another seed does not change it: relative error 0.9"


FILE = makes((), ["model.safetensors"], w=0.9)


DRAWN = "NEW draws other initial weights from the same seed (w)"


@pytest.mark.parametrize(
    ("own", "seeded", "new", "code", "message"),
    [
        (SAME, SAME, OTHER_W, 1, FIXED),
        (SAME, SAME, FILE, 1, f"{FIXED} (weights are read from model.safetensors)"),
        (SAME, SAME, makes((), w=None), 1, "another seed does not change it: not finite"),
        (SAME, makes((), w=0.5), OTHER_W, 0, DRAWN),
        (SAME, makes((), w=0.5), FILE, 0, DRAWN),
        (OTHER_W, OTHER_W, OTHER_W, 0, "equal to OLD"),  # random in OLD
        (SAME, SAME, makes((), w=1e-18), 1, FIXED.replace("0.9", "1e-18")),  # the worker has decided
        (SAME, partly(slice(10, 12)), OTHER_W, 1, f"{PARTLY} (10 of its 12 numbers): relative error 0.9"),
        (SAME, partly(slice(10, 12)), partly(slice(9, 12)), 1, f"{PARTLY} (1 of its 12 numbers)"),
        (SAME, partly(slice(10, 12)), partly(slice(10, 12)), 0, DRAWN),
        (SAME, makes((), w=0.5), partly(slice(10, 12)), 0, DRAWN),
        (
            partly(slice(10, 12)),
            partly(slice(10, 12)),
            partly(slice(0, 1)),
            1,
            f"{PARTLY} (1 of its 12 numbers)",
        ),
        (SAME, SAME, SAME, 0, "equal to OLD"),
    ],
)
def test_weights_that_another_seed_does_not_change_must_be_those_of_old_and_drawn_ones_may_differ(
    model_gate, capsys, own, seeded, new, code, message
):
    assert model_gate(old={"own": own, "seeded": seeded}, new={"own": new}) == code
    output = capsys.readouterr()
    assert message in output.out
    assert ("initial weights" in message) == ("initial weights" in output.out)
    assert ("  OLD, with another seed" in output.err) == (own is not OTHER_W and new is not SAME)


RENAMED = {"way": "shapes", "names": {"v": "w"}, "guess": False}


CONVERTED = {"weights": {"way": "checkpoint", "names": {"gate": "gate"}, "guess": False}}


FUSED, TWO = makes(("gate",), qk=0.9), makes(("gate",), q2=0.9, b2=0.9)


@pytest.mark.parametrize(
    ("seeded", "new", "code", "message"),
    [
        (makes(), {**makes((), v=0.9), "weights": RENAMED}, 1, "v has other values in NEW, and another seed"),
        (makes((), w=0.5), {**makes((), v=0.9), "weights": RENAMED}, 0, "from the same seed (v)"),
        (makes(("gate",), q=0.5, k=0.5), {**FUSED, **CONVERTED}, 0, "from the same seed (qk)"),
        (makes(("gate", "q", "k")), {**FUSED, **CONVERTED}, 1, "qk have other values in NEW"),
        (makes(("q", "k"), gate=0.5), {**FUSED, **CONVERTED}, 1, "another seed changes only 0 in OLD"),
        (makes(("gate", "b"), q=0.5), {**TWO, **CONVERTED}, 1,
         "b2 and 1 more have other values in NEW, and of these 24 numbers, another seed changes only 12 in OLD"),
    ],
)  # fmt: skip
def test_weights_that_new_renames_or_fuses_are_looked_up_by_their_names_in_old(
    model_gate, capsys, seeded, new, code, message
):
    names = {"gradients": {}, "updates": {"1": {}, "10": {}}}
    old = {"numbers": {**NUMBERS, **names}, "own": makes(), "seeded": seeded}
    assert model_gate(old=old, new={"numbers": {**NUMBERS, **names}, "own": new}) == code
    assert message in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("places", ["none", "AAAA", agreement.packed(numpy.ones(13 * 8, bool))])
def test_places_that_fit_no_array_are_no_answer(model_gate, capsys, places):
    assert model_gate(old={"own": SAME}, new={"own": {**OTHER_W, "places": {"w": places}}}) == 1
    assert "sent an invalid answer during 'parity': the places of 'w'" in capsys.readouterr().out


def test_if_old_fails_with_another_seed_there_is_no_verdict(model_gate, capsys):
    assert model_gate(old={"own": SAME, "fails_with_seed": True}, new={"own": OTHER_W}) == 3
    assert "OLD with another seed: " in " ".join(capsys.readouterr().out.split())


GUESSED = {"way": "order", "names": {"v": "w"}, "guess": True}


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({}, 0, "matched by order and shape"),
        ({"logits": [1.0, 0.5, 0.4]}, 3, "not comparable: logits differ (rung 3): relative error 0.15"),
        ({"loss": 2.5}, 3, "not comparable: loss differs"),
        ({"losses": [2.3, 2.2, 2.4]}, 3, "not comparable: losses differ"),
        ({"repeats": False}, 1, "two calls on one batch differ"),
        (makes((), v=0.9), 3, "not comparable: v has other values in NEW"),
        ({"inputs": {"ids": 0.9}}, 1, "ids has other values in NEW"),
    ],
)
def test_a_difference_after_a_match_that_had_alternatives_is_not_comparable(model_gate, capsys, changes, code, message):
    named = {"v": SKETCH}
    new = {**NUMBERS, "gradients": named, "updates": {"1": named, "10": named}, "weights": GUESSED, **changes}
    assert model_gate(old={"own": makes(), "seeded": makes()}, new={"numbers": new}) == code
    out = " ".join(capsys.readouterr().out.split())
    assert message in out
    assert ("Name the pairs: --weights-map FILE" in out) == (code == 3)


def test_a_difference_after_a_match_without_alternatives_is_broken(model_gate, capsys):
    named = {"v": SKETCH}
    new = {**OTHER, "gradients": named, "updates": {"1": named, "10": named}, "weights": RENAMED}
    assert model_gate(new={"numbers": new}) == 1
    assert "NEW differs from OLD: logits differ" in capsys.readouterr().out


@pytest.mark.slow
def test_what_old_does_not_repeat_is_left_out_and_said(model_gate, capsys):
    with_seed = {"w": SKETCH, "seed": SKETCH}
    numbers = {**NUMBERS, "updates": {"1": with_seed, "10": with_seed}}
    moved = {"w": SKETCH, "seed": [9.0, 9.0, 9.0]}
    other = {"updates": {"1": moved, "10": moved}}
    assert model_gate(old={"numbers": numbers, "own": other}, new={"numbers": numbers}) == 0
    message = "Not compared, because rounding decides it in OLD: update of seed after step 1"
    assert message in capsys.readouterr().out
    assert model_gate(old={"numbers": numbers}, new={"numbers": {**numbers, **other}}) == 1


IDS = {"name": "ids", "kind": "int", "shape": [8, 3], "high": 9, "dtype": "int64"}


PIXELS = {**IDS, "kind": "float", "high": None, "dtype": "float32"}


@pytest.mark.parametrize(
    ("given", "old", "new", "code", "message"),
    [
        (IDS, {"ids": 0.0}, {"ids": 0.25}, 1, "NEW differs from OLD: ids has other values in NEW: relative error 0.25"),
        (IDS, {"ids": 0.0}, {"ids": 1e-6}, 1, "ids has other values in NEW: relative error 1e-06"),
        (PIXELS, {"ids": 0.0}, {"ids": 0.0}, 0, "equal to OLD"),
        (PIXELS, {"ids": 0.0}, {"ids": 1e-6}, 1, "ids has other values in NEW: relative error 1e-06"),
        (PIXELS, {"ids": 0.0}, {"ids": None}, 1, "ids has other values in NEW: not finite"),
        (IDS, {"ids": 0.4}, {"ids": 0.3}, 0, "example_inputs() returns other values of ids in each process"),
    ],
)  # fmt: skip
def test_values_of_example_inputs_are_those_of_old(model_gate, capsys, given, old, new, code, message):
    inspected = {**INSPECTION, "inputs": [given]}
    arms = {name: {"inspection": inspected, "own": {"inputs": of_arm}} for name, of_arm in (("old", old), ("new", new))}
    assert model_gate(**arms) == code
    assert message in capsys.readouterr().out


RANDOM = [
    ("random numbers, partitionable", "jax_threefry_partitionable", False, True),
    ("random numbers", "jax_default_prng_impl", "threefry2x32", "rbg"),
]


def of_defaults(fact, value, *, framework="jax", **inspected):
    """The script of a release whose default of a fact about random numbers is a value."""
    facts = {**INSPECTION, "framework": framework, **inspected}
    return {"inspection": facts, "release": "0.5.0", "table": {fact: value}}


@pytest.mark.parametrize(("repaired", "named"), [({"logits": SKETCH}, True), ({"logits": [1.0, 0.5, 0.9]}, False)])
@pytest.mark.parametrize(("fact", "setting", "before", "after"), RANDOM)
def test_a_changed_default_of_random_numbers_is_named_if_it_is_the_cause(
    model_gate, capsys, repaired, named, fact, setting, before, after
):
    new = {**of_defaults(fact, after), "numbers": OTHER, "unless": setting.upper(), "repaired": repaired}
    assert model_gate(old=of_defaults(fact, before), new=new) == 1
    output = capsys.readouterr()
    assert f"  NEW, with {setting} as in OLD" in output.err
    message = f"Likely cause: the default of {setting} changed from {before} to {after}"
    assert (message in output.out) == named
    [path] = Path(".stele/gates").glob("*.jsonl")
    assert (message in next(iter(replay.judge(record.read(path)))).message) == named


@pytest.mark.parametrize(("fact", "setting", "before", "after"), RANDOM)
def test_a_changed_default_is_named_beside_the_initial_weights_that_new_draws(
    model_gate, capsys, fact, setting, before, after
):
    old = {**of_defaults(fact, before), "own": SAME, "seeded": makes((), w=0.5)}
    assert model_gate(old=old, new={**of_defaults(fact, after), "own": OTHER_W}) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"{DRAWN}. The default of {setting} changed from {before} to {after}." in out


@pytest.mark.parametrize(("fact", "setting", "before", "after"), RANDOM)
def test_a_changed_default_is_named_beside_the_example_inputs_that_new_draws(
    model_gate, capsys, fact, setting, before, after
):
    old = {**of_defaults(fact, before, inputs=[IDS]), "own": {"inputs": {"ids": 0.0}}}
    new = {**of_defaults(fact, after, inputs=[IDS]), "own": {"inputs": {"ids": 0.25}}}
    assert model_gate(old=old, new=new) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "NEW differs from OLD: ids has other values in NEW: relative error 0.25. " in out
    assert f". The default of {setting} changed from {before} to {after}" in out


def test_a_default_of_jax_is_no_cause_in_another_framework(model_gate, capsys):
    fact, setting, before, after = RANDOM[0]
    new = {**of_defaults(fact, after, framework="torch"), "numbers": OTHER}
    new |= {"unless": setting.upper(), "repaired": {"logits": SKETCH}}
    assert model_gate(old=of_defaults(fact, before, framework="torch"), new=new) == 1
    assert "  NEW, with" not in capsys.readouterr().err


def test_the_verdict_on_parity_states_the_tolerance_and_the_rounding(model_gate, capsys):
    changed = {**NUMBERS, "logits": [1.0, 0.5, 0.25 * (1 + 1e-6)]}
    assert model_gate(new={"numbers": changed}) == 0
    out = capsys.readouterr().out
    assert "largest relative error" in out and "tolerance 1e-05" in out
    assert re.search(r"Rounding in OLD: 0\.0e\+00 with \d threads?, 0\.0e\+00 with the batch reversed", out)


def verdict(compared=None, **changed):
    """Return the verdict on launches that all give the same numbers, except those of these names, and their names."""
    threads = counted(model_verdict.other_threads(CPU), "thread")
    entries = {
        model_verdict.OLD: succeeded({"reference": NUMBERS, "reversed": NUMBERS}),
        model_verdict.AGAIN: succeeded(NUMBERS),
        threads: succeeded(NUMBERS),
        model_verdict.NEW: succeeded(NUMBERS),
        model_verdict.DEFAULTS: succeeded({"changes": []}),
        **changed,
    }
    launched = []

    def source(name):
        launched.append(name)
        return entries[name]

    cells = (Cell("net.py:build", "infer"),)
    model = Model("net.py:build", Path())
    return model_verdict.verdict(model, cells, CPU, compared or Comparison(), source), launched


def succeeded(numbers):
    return {"numbers": numbers, "failure": None, "took": 1.0}


def failed(**facts):
    return {"numbers": None, "failure": "no such kernel", "took": 2.0, "launches": 2, "repeated": False, **facts}


def test_a_model_that_differs_before_it_computes_needs_no_launch():
    said, launched = verdict(Comparison(differences=tuple("abcdef")))
    assert (said.status, launched) == ("BROKEN", [])
    assert said.message == "NEW differs from OLD: a. b. c. d. 2 more differences"
    said, launched = verdict(Comparison(failure="it cannot be built"))
    assert (said.status, said.message, launched) == ("BROKEN", "NEW: it cannot be built", [])


def test_equal_numbers_need_four_launches():
    said, launched = verdict()
    assert (said.status, len(launched)) == ("PASS", 4)


def test_a_failure_of_old_is_no_verdict_on_new():
    said, launched = verdict(again=failed())
    assert (said.status, said.message) == ("INCONCLUSIVE", "OLD: no such kernel")
    assert model_verdict.NEW not in launched


@pytest.mark.parametrize(
    ("of_new", "last", "status", "message"),
    [
        ({"repeated": True}, None, "BROKEN", "NEW: no such kernel"),
        ({"launches": 4}, None, "BROKEN", "NEW: no such kernel"),
        ({"launches": 4}, "killed", "INCONCLUSIVE", "OLD fails, too: killed"),
        ({"launches": 2}, None, "INCONCLUSIVE", "NEW failed in 2 launches, too few to exclude chance: no such kernel"),
    ],
)
def test_a_failure_of_new_is_judged_by_how_often_it_failed_and_whether_old_fails(of_new, last, status, message):
    said, _ = verdict(new=failed(**of_new), **{model_verdict.LAST: {**succeeded({}), "failure": last}})
    assert (said.status, said.message) == (status, message)


def test_a_failure_that_more_launches_may_decide_says_how_long_they_take():
    said, _ = verdict(new=failed())
    assert said.needs == model_verdict.LAUNCHES * 2.0
