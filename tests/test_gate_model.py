"""``stele gate --model``: a model of the user, on environments that return scripted numbers."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

from fakes import INSPECTION
from stele import __main__ as entry_point
from stele import environments
from stele.commands import gate as gate_command
from stele.commands.gate import shortened
from stele.environments import Environment
from stele.environments.lockfiles import Locked
from stele.environments.packages import NothingUpgradedError
from stele.errors import SteleError
from stele.gate import record, replay
from stele.measuring import content, measure, processors
from stele.measuring.worker import WorkerError
from stele.models import changes, inspection
from stele.text import counted
from stele_worker import agreement

SECONDS = [0.5, *[0.010, 0.011, 0.012] * 16]
SKETCH = [1.0, 0.5, 0.25]
NUMBERS = {
    "task": "0",
    "unequal": {},
    "layers": {"first": SKETCH, "second": SKETCH},
    "logits": SKETCH,
    "repeats": True,
    "tracked": False,
    "norms": {"w": 1.0},
    "loss": 2.3,
    "gradients": {"w": SKETCH},
    "updates": {"1": {"w": SKETCH}, "10": {"w": SKETCH}},
    "losses": [2.3, 2.2, 2.1],
}


@pytest.fixture
def gate(add_environment, tmp_path):
    """gate(*options, old={...}, new={...}) -> exit code of a gate of net.py:build."""
    (tmp_path / "net.py").write_text("build = None\n")
    script = {"seconds": SECONDS, "numbers": NUMBERS, "inspection": INSPECTION}

    def gate(*options, old=None, new=None, metric="parity"):
        add_environment("old", **{**script, **(old or {})})
        add_environment("new", **{**script, **(new or {})})
        command = [
            "gate",
            "old",
            "new",
            "--model",
            "net.py:build",
            f"--metric={metric}",
            "--worker-timeout=20",
        ]
        return entry_point.main([*command, *options])

    return gate


def test_a_model_that_computes_the_same_passes(gate, capsys):
    assert gate() == 0
    output = capsys.readouterr()
    assert "Scripted: 12 parameters; inputs 8x3 from the signature" in output.err
    assert "net.py:build all  parity" in output.out
    assert "equal to OLD" in output.out
    assert "PASS: old to new." in output.out


def test_steps_of_a_model_are_measured_like_those_of_a_task(gate, capsys):
    assert gate("--phase=infer", "--budget=60s", metric="host-memory") == 0
    assert "PASS net.py:build infer host-memory" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("script", "framework"),
    [
        ({}, INSPECTION["framework"]),
        ({"inspection": {**INSPECTION, "framework": "keras"}}, "keras"),
        ({"inspect": "user_error"}, INSPECTION["framework"]),  # parity says that NEW does not build the model
    ],
)
def test_new_runs_the_framework_that_the_model_has_there(gate, monkeypatch, script, framework):
    trials = []
    run = gate_command.run_trial
    monkeypatch.setattr(gate_command, "run_trial", lambda trial, log: trials.append(trial) or run(trial, log))
    gate(new=script)
    [trial] = trials
    assert (trial.old.framework, trial.new.framework) == (INSPECTION["framework"], framework)


@pytest.mark.parametrize(("phase", "shown"), [("infer", False), ("train", True)])
def test_the_loss_is_shown_for_training_alone(gate, capsys, phase, shown):
    assert gate(f"--phase={phase}") == 0
    error = capsys.readouterr().err
    assert "Scripted: 12 parameters; inputs 8x3 from the signature" in error
    assert ("; loss: the model's own" in error) is shown


def test_the_first_layer_that_differs_is_named(gate, capsys):
    layers = {"first": SKETCH, "second": [1.0, 0.6, 0.25]}
    assert gate(new={"numbers": {**NUMBERS, "layers": layers, "logits": [1.0, 0.6, 0.25]}}) == 1
    out = capsys.readouterr().out
    assert "BROKEN" in out
    assert "NEW differs from OLD: layers differ (rung 2): output of second: relative error 0.1" in out


def test_a_new_release_in_which_the_model_fails_is_broken(gate, capsys):
    assert gate(new={"parity": "user_error"}) == 1
    assert "NEW: net.py raised ZeroDivisionError" in capsys.readouterr().out


@pytest.mark.parametrize("options", [(), ("--budget=1s",)], ids=["enough", "no budget"])
def test_an_exception_that_new_repeats_is_broken_after_two_launches(gate, capsys, options):
    assert gate(*options, new={"parity": "user_error"}) == 1
    [path] = Path(".stele/gates").glob("*.jsonl")
    entries = {tuple(one["key"]): one for one in map(json.loads, path.read_text().splitlines()[1:])}
    assert entries["model parity", "new"]["launches"] == 2
    assert ("model parity", "OLD, launch 3") not in entries


def test_a_crash_of_new_is_looked_at_again_only_while_the_budget_lasts(gate, capsys):
    assert gate("--budget=0.001s", new={"parity": "segfault"}) == 3
    assert "NEW failed in 2 launches, too few to exclude chance" in capsys.readouterr().out
    assert gate(new={"parity": "segfault"}) == 1


ALBERT = [{"name": name, "kind": "int", "shape": [2, 9], "high": 64} for name in ("ids", "token_type_ids")]
BUILT = {
    "arrays": [{"name": "w", "shape": [12], "dtype": "float32", "parameter": True}],
    "tied": [],
    "training": True,
}
PAIR = {**BUILT, "arrays": [{**BUILT["arrays"][0], "name": name, "shape": [6]} for name in ("w", "head")]}
TIED = {**PAIR, "tied": [["w", "head"]]}
HALF = {**BUILT, "arrays": [{**BUILT["arrays"][0], "dtype": "float16"}]}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ({"inputs": ALBERT}, {"inputs": ALBERT[:1]}, "token_type_ids is missing in NEW"),
        ({"built": BUILT}, {"built": HALF}, "float16 in NEW, float32 in OLD (w)"),
        ({"built": TIED}, {"built": PAIR}, "w and head are one tensor in OLD, two in NEW"),
        ({"built": PAIR}, {"built": TIED}, "w and head are one tensor in NEW, two in OLD"),
        ({"loss": "squared"}, {"loss": "own"}, "the loss is own in NEW, squared in OLD"),
        ({"output": [8, 2]}, {"output": [8, 8]}, "the output has shape 8x8 in NEW, 8x2 in OLD"),
    ],
)
def test_a_model_that_new_builds_in_another_way_is_broken(gate, capsys, old, new, message):
    arms = {
        name: {"inspection": {**INSPECTION, "inferred_from": "example_inputs()", **changes}}
        for name, changes in (("old", old), ("new", new))
    }
    assert gate(**arms) == 1
    assert f"NEW differs from OLD: {message}" in capsys.readouterr().out
    [path] = Path(".stele/gates").glob("*.jsonl")
    assert next(iter(replay.judge(record.read(path)))).message.startswith("NEW differs")


def outputs_of(*names):
    facts = [{"name": name, "shape": [8, 2], "dtype": "float32"} for name in names]
    return {"inspection": {**INSPECTION, "outputs": facts, "main": names[0]}}


def test_an_output_that_new_lacks_is_broken(gate, capsys):
    assert gate(old=outputs_of("logits", "boxes"), new=outputs_of("logits")) == 1
    assert "NEW differs from OLD: the output boxes is missing in NEW" in capsys.readouterr().out


def test_what_a_model_returns_and_cannot_be_compared_is_named_in_the_verdict(gate, capsys):
    numbers = {**NUMBERS, "ignored": ["aux (Thing)"]}
    assert gate(old={"numbers": numbers}, new={"numbers": numbers}) == 0
    assert capsys.readouterr().out.count("no arrays, numbers or texts: output aux (Thing)") == 1


@pytest.mark.parametrize("changed", ["boxes", "cache.2", "aux"])
def test_an_output_beside_the_first_that_differs_is_broken(gate, capsys, changed):
    old = {name: {"shape": [2], "numbers": [1.0, 2.0]} for name in ("boxes", "cache.2", "aux")}
    new = {**old, changed: {"shape": [2], "numbers": [1.0, 2.2]}}
    assert (
        gate(old={"numbers": {**NUMBERS, "outputs": old}}, new={"numbers": {**NUMBERS, "outputs": new}}) == 1
    )
    assert f"the output {changed} differs (rung 3): relative error 0.1" in capsys.readouterr().out


@pytest.mark.parametrize("phase", [(), ("--phase=train",), ("--phase=infer",)])
def test_a_training_of_the_users_own_is_refused_and_inference_is_measured(gate, capsys, phase):
    reason = "it trains by its own train_step. Measure inference alone with --phase infer, or write a recipe"
    own = {"inspection": {**INSPECTION, "untrained": reason}}
    assert gate(*phase, old=own, new=own) == (0 if "infer" in "".join(phase) else 2)
    error = capsys.readouterr().err
    assert (f"net.py:build: {reason}" in error) is ("infer" not in "".join(phase))
    assert "; loss:" not in error  # it is not the one that the user trains with


def test_the_dtype_of_the_parameters_is_said(gate, capsys):
    half = {"inspection": {**INSPECTION, "built": HALF}}
    assert gate("--phase=infer", old=half, new=half) == 0
    assert "inputs 8x3 from the signature; dtype: float16\n" in capsys.readouterr().err


def test_without_parity_a_difference_is_said_and_time_is_measured(gate, capsys):
    new = {"inspection": {**INSPECTION, "output": [8, 8]}}
    old = {"inspection": {**INSPECTION, "output": [8, 2]}}
    assert gate("--phase=infer", "--budget=60s", old=old, new=new, metric="host-memory") == 0
    assert "NEW differs from OLD: the output has shape 8x8 in NEW" in capsys.readouterr().err


@pytest.mark.parametrize("metric", ["parity", "step"])
@pytest.mark.parametrize("action", ["user_error", "segfault"])
def test_a_new_release_in_which_the_model_cannot_be_built_is_broken(gate, capsys, metric, action):
    assert gate(new={"inspect": action}, metric=metric) == 1
    output = capsys.readouterr()
    assert {"user_error": "NEW: net.py raised ZeroDivisionError", "segfault": "SIGSEGV"}[action] in output.out
    assert "parity: OLD" not in output.err


@pytest.mark.parametrize(("arm", "code"), [("old", 2), ("new", 1)])
def test_the_environment_that_lacks_a_module_of_the_users_code_is_named(gate, capsys, arm, code):
    assert gate(**{arm: {"inspect": "missing_module"}}) == code
    output = capsys.readouterr()
    assert f"The environment of {arm} has no module 'flax'. Check the spelling" in " ".join(
        (output.out + output.err).split()
    )


@pytest.mark.parametrize(
    ("error", "lock", "remedy"),
    [
        (
            "No module named 'flax'",
            Path("pylock.toml"),
            "or add its package to both arms, such as --with flax.",
        ),
        ("No module named 'flax'", None, "or install its package in jax==0.9.2."),
        ("No module named 'jax.experimental.stax'", None, None),  # a part that the release has dropped
        ("No module named 'net.part'; 'net' is not a package", None, None),
    ],
)
def test_a_module_that_is_missing_comes_with_the_remedy_of_its_environment(error, lock, remedy):
    environment = Environment(name="jax==0.9.2", label="", framework="jax", lock=lock)
    message = f"net.py:build raised ModuleNotFoundError: {error}"
    failure = WorkerError(
        "", worker=SimpleNamespace(environment=environment), kind="UserCodeError", message=message
    )
    lines = str(inspection.user_error(failure)).splitlines()
    assert lines[0] == message
    assert [line.partition("name, ")[2] for line in lines[1:]] == ([remedy] if remedy else [])


def launches(capsys):
    """The launches of parity in the order in which they began, as the command prints them."""
    lines = capsys.readouterr().err.splitlines()
    return [line.removeprefix("parity: ").partition(":")[0] for line in lines if line.startswith("parity: ")]


OTHER = {**NUMBERS, "logits": [1.0, 0.5, 0.4]}


@pytest.mark.parametrize(
    ("own", "what"),
    [
        ({"logits": [1.0, 0.5, 0.4]}, "logits: relative error 0.15, tolerance 1e-05"),
        ({"logits": [1.0, 0.5, 0.25 + 3e-5]}, "logits: relative error 3e-05, tolerance 1e-05"),
        ({"loss": 2.5}, "loss: relative error 0.087"),
        ({"losses": [2.3, 2.2, 2.4]}, "losses: step 3: relative error 0.14"),
        ({"logits": None}, "logits: not finite"),
    ],
)
def test_a_model_that_is_different_in_each_process_is_refused(gate, capsys, own, what):
    assert gate(old={"own": own}) == 2
    err = capsys.readouterr().err
    assert "net.py:build computes something else in each process of OLD, although everything is equal." in err
    assert what in err
    assert "parity: NEW" not in err
    [path] = Path(".stele/gates").glob("*.jsonl")
    assert "in each process of OLD" in next(iter(replay.judge(record.read(path)))).message


@pytest.mark.parametrize("changes", [{"logits": [1.0, None]}, {"loss": None}])
def test_an_old_release_without_finite_outputs_is_an_error_of_the_user(gate, capsys, changes):
    assert gate(old={"numbers": {**NUMBERS, **changes}}) == 2
    assert "of OLD" in (err := capsys.readouterr().err)
    assert "not finite" in err


def test_weights_that_cannot_be_matched_are_not_broken_and_time_is_measured_all_the_same(gate, capsys):
    new = {"parity": "unfit_weights"}
    assert gate("--phase=infer", "--budget=60s", new=new, metric="parity,host-memory") == 3
    out = " ".join(capsys.readouterr().out.split())
    assert "INCONCLUSIVE net.py:build infer parity not comparable: The weights lack 'gate.weight'" in out
    assert "--weights-map FILE" in out
    assert "PASS net.py:build infer host-memory" in out


def test_a_failure_that_repeats_itself_needs_no_more_launches_of_old(gate, capsys):
    assert gate(new={"parity": "user_error"}) == 1
    other = counted(min(2, processors.count()), "thread")
    assert launches(capsys) == ["OLD", "OLD, again", f"OLD, {other}", "NEW"]


def test_of_failures_that_are_not_alike_old_is_launched_as_often_as_new(gate, capsys):
    assert gate(new={"parity": "other_error"}) == 1
    assert launches(capsys)[-2:] == ["NEW", "OLD, launch 4"]


def test_a_pretrained_file_that_does_not_fit_new_is_an_error_of_the_user(gate, capsys):
    assert gate(new={"inspect": "unfit_weights"}) == 2
    assert "new: The weights lack 'gate.weight'" in (err := capsys.readouterr().err)
    assert "--weights-map FILE" in err


def test_a_file_that_was_matched_by_shape_is_said(gate, capsys):
    remark = "The weights have other names than the model. By their shapes, 'a.bias' gets 'zzz'."
    gate(old={"inspection": {**INSPECTION, "remark": remark}})
    assert remark in capsys.readouterr().err


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
def test_renamed_parameters_are_compared_and_the_way_is_said(gate, capsys, loaded, message):
    names = {"v": SKETCH} if "v" in loaded["names"] else dict.fromkeys(("w", "fused"), SKETCH)
    new = {**NUMBERS, "gradients": names, "updates": {"1": names, "10": names}, "weights": loaded}
    assert gate(new={"numbers": new}) == 0
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
    gate, capsys, own, seeded, new, code, message
):
    assert gate(old={"own": own, "seeded": seeded}, new={"own": new}) == code
    output = capsys.readouterr()
    assert message in output.out
    assert ("initial weights" in message) == ("initial weights" in output.out)
    assert ("parity: OLD, with another seed" in output.err) == (own is not OTHER_W and new is not SAME)


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
    gate, capsys, seeded, new, code, message
):
    names = {"gradients": {}, "updates": {"1": {}, "10": {}}}
    old = {"numbers": {**NUMBERS, **names}, "own": makes(), "seeded": seeded}
    assert gate(old=old, new={"numbers": {**NUMBERS, **names}, "own": new}) == code
    assert message in capsys.readouterr().out


@pytest.mark.parametrize("places", ["none", "AAAA", agreement.packed(numpy.ones(13 * 8, bool))])
def test_places_that_fit_no_array_are_no_answer(gate, capsys, places):
    assert gate(old={"own": SAME}, new={"own": {**OTHER_W, "places": {"w": places}}}) == 1
    assert "sent an invalid answer during 'parity': the places of 'w'" in capsys.readouterr().out


def test_if_old_fails_with_another_seed_there_is_no_verdict(gate, capsys):
    assert gate(old={"own": SAME, "fails_with_seed": True}, new={"own": OTHER_W}) == 3
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
def test_a_difference_after_a_match_that_had_alternatives_is_not_comparable(
    gate, capsys, changes, code, message
):
    named = {"v": SKETCH}
    new = {**NUMBERS, "gradients": named, "updates": {"1": named, "10": named}, "weights": GUESSED, **changes}
    assert gate(old={"own": makes(), "seeded": makes()}, new={"numbers": new}) == code
    out = " ".join(capsys.readouterr().out.split())
    assert message in out
    assert ("Name the pairs: --weights-map FILE" in out) == (code == 3)


def test_a_difference_after_a_match_without_alternatives_is_broken(gate, capsys):
    named = {"v": SKETCH}
    new = {**OTHER, "gradients": named, "updates": {"1": named, "10": named}, "weights": RENAMED}
    assert gate(new={"numbers": new}) == 1
    assert "NEW differs from OLD: logits differ" in capsys.readouterr().out


def test_what_old_does_not_repeat_is_left_out_and_said(gate, capsys):
    with_seed = {"w": SKETCH, "seed": SKETCH}
    numbers = {**NUMBERS, "updates": {"1": with_seed, "10": with_seed}}
    moved = {"w": SKETCH, "seed": [9.0, 9.0, 9.0]}
    other = {"updates": {"1": moved, "10": moved}}
    assert gate(old={"numbers": numbers, "own": other}, new={"numbers": numbers}) == 0
    message = "Not compared, because rounding decides it in OLD: update of seed after step 1"
    assert message in capsys.readouterr().out
    assert gate(old={"numbers": numbers}, new={"numbers": {**numbers, **other}}) == 1


@pytest.mark.parametrize("arm", ["old", "new"])
@pytest.mark.parametrize("verb", ["parity", "inspect", "train"])
def test_a_mistake_of_stele_is_no_verdict(gate, capsys, arm, verb):
    assert gate(metric="parity,step" if verb == "train" else "parity", **{arm: {verb: "internal_error"}}) == 4
    output = capsys.readouterr()
    assert "This is an error in Stele, not a verdict." in output.err
    assert "name 'nets' is not defined" in output.err
    assert "BROKEN" not in output.out and "INCONCLUSIVE" not in output.out


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
def test_values_of_example_inputs_are_those_of_old(gate, capsys, given, old, new, code, message):
    inspected = {**INSPECTION, "inputs": [given]}
    arms = {
        name: {"inspection": inspected, "own": {"inputs": of_arm}}
        for name, of_arm in (("old", old), ("new", new))
    }
    assert gate(**arms) == code
    assert message in capsys.readouterr().out


RANDOM = [
    ("random numbers, partitionable", "jax_threefry_partitionable", False, True),
    ("random numbers", "jax_default_prng_impl", "threefry2x32", "rbg"),
]


def of_defaults(fact, value, *, framework="jax", **inspected):
    """The script of a release whose default of a fact about random numbers is a value."""
    facts = {**INSPECTION, "framework": framework, **inspected}
    return {"inspection": facts, "release": "0.5.0", "table": {fact: value}}


@pytest.mark.parametrize(
    ("repaired", "named"), [({"logits": SKETCH}, True), ({"logits": [1.0, 0.5, 0.9]}, False)]
)
@pytest.mark.parametrize(("fact", "setting", "before", "after"), RANDOM)
def test_a_changed_default_of_random_numbers_is_named_if_it_is_the_cause(
    gate, capsys, repaired, named, fact, setting, before, after
):
    new = {**of_defaults(fact, after), "numbers": OTHER, "unless": setting.upper(), "repaired": repaired}
    assert gate(old=of_defaults(fact, before), new=new) == 1
    output = capsys.readouterr()
    assert f"parity: NEW, with {setting} as in OLD" in output.err
    message = f"Likely cause: the default of {setting} changed from {before} to {after}"
    assert (message in output.out) == named
    [path] = Path(".stele/gates").glob("*.jsonl")
    assert (message in next(iter(replay.judge(record.read(path)))).message) == named


@pytest.mark.parametrize(("fact", "setting", "before", "after"), RANDOM)
def test_a_changed_default_is_named_beside_the_initial_weights_that_new_draws(
    gate, capsys, fact, setting, before, after
):
    old = {**of_defaults(fact, before), "own": SAME, "seeded": makes((), w=0.5)}
    assert gate(old=old, new={**of_defaults(fact, after), "own": OTHER_W}) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"{DRAWN}. The default of {setting} changed from {before} to {after}." in out


@pytest.mark.parametrize(("fact", "setting", "before", "after"), RANDOM)
def test_a_changed_default_is_named_beside_the_example_inputs_that_new_draws(
    gate, capsys, fact, setting, before, after
):
    old = {**of_defaults(fact, before, inputs=[IDS]), "own": {"inputs": {"ids": 0.0}}}
    new = {**of_defaults(fact, after, inputs=[IDS]), "own": {"inputs": {"ids": 0.25}}}
    assert gate(old=old, new=new) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "NEW differs from OLD: ids has other values in NEW: relative error 0.25. " in out
    assert f". The default of {setting} changed from {before} to {after}" in out


def test_a_default_of_jax_is_no_cause_in_another_framework(gate, capsys):
    fact, setting, before, after = RANDOM[0]
    new = {**of_defaults(fact, after, framework="torch"), "numbers": OTHER}
    new |= {"unless": setting.upper(), "repaired": {"logits": SKETCH}}
    assert gate(old=of_defaults(fact, before, framework="torch"), new=new) == 1
    assert launches(capsys)[-1] == "NEW"


def test_an_old_release_in_which_parity_fails_gives_no_verdict(gate, capsys):
    assert gate(old={"parity": "raise_error"}) == 3
    assert "no such kernel" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("metric", "verb"), [("parity", "parity"), ("step", "train"), ("step", "infer"), ("host-memory", "train")]
)
@pytest.mark.parametrize("new", [True, False], ids=["both", "old alone"])
def test_an_error_of_the_users_code_in_old_is_an_error_of_the_user(gate, capsys, metric, verb, new):
    script = {verb: "user_error"}
    assert gate(old=script, new=script if new else {}, metric=metric) == 2
    output = capsys.readouterr()
    assert "stele: net.py raised ZeroDivisionError: division by zero\n  File net.py, line 3" in output.err
    assert "verdict" not in output.out


@pytest.mark.parametrize("new", [True, False], ids=["both", "old alone"])
def test_an_optimizer_that_old_cannot_import_is_an_error_of_the_user_which_no_budget_helps(gate, capsys, new):
    script = {"train": "spec_error"}
    assert gate("--phase=train", old=script, new=script if new else {}, metric="step") == 2
    output = capsys.readouterr()
    assert output.err.splitlines()[-1] == (
        "stele: The optimizer 'torch.optim:AdamWW' cannot be imported: torch.optim has no AdamWW"
    )
    assert "--budget" not in output.err + output.out


def test_a_model_that_new_cannot_run_is_broken_and_its_time_is_not_measured(gate, capsys):
    assert gate("--phase=infer", "--budget=60s", new={"parity": "user_error"}, metric="parity,step") == 1
    output = capsys.readouterr()
    assert "BROKEN" in output.out and "NEW: net.py raised ZeroDivisionError" in output.out
    assert "time and memory" not in output.err


def test_an_error_of_the_users_code_in_new_alone_is_broken(gate, capsys):
    assert gate("--phase=infer", new={"infer": "user_error"}, metric="step") == 1
    assert "net.py raised ZeroDivisionError" in capsys.readouterr().out


@pytest.mark.parametrize("arm", ["old", "new"])
@pytest.mark.parametrize(
    ("metric", "verb"), [("parity", "configure"), ("step", "train"), ("parity", "parity")]
)
def test_what_no_release_is_to_blame_for_is_an_error_of_the_environment(gate, capsys, arm, metric, verb):
    assert gate(metric=metric, **{arm: {verb: "setup_error"}}) == 2
    assert f"'{arm}' cannot be measured: JAX_DISABLE_JIT=1 disables the compiler" in capsys.readouterr().err


@pytest.mark.parametrize(("metric", "verb"), [("parity", "parity"), ("step", "train")])
def test_an_environment_that_is_renamed_during_the_gate_is_named_and_the_gate_resumes(
    gate, add_environment, tmp_path, capsys, monkeypatch, metric, verb
):
    monkeypatch.setattr(content, "of_environment", lambda *_, **__: {})  # whose script changes
    program = tmp_path / "python"
    program.symlink_to(sys.executable)
    script = {"seconds": SECONDS, "numbers": NUMBERS, "inspection": INSPECTION, "program": str(program)}

    def add_new(**more):
        add_environment("new", **{**script, **more})
        path = tmp_path / "new.toml"
        path.write_text(path.read_text().replace(sys.executable, str(program)))
        environments.described.cache_clear()

    gate()
    add_new(**{verb: "lose_the_program"})
    arguments = ["--model=net.py:build", f"--metric={metric}", "--phase=train", "--budget=60s"]
    capsys.readouterr()
    assert entry_point.main(["gate", "old", "new", *arguments]) == 2
    assert f"its interpreter {program} no longer exists" in capsys.readouterr().err
    program.with_name("python.gone").rename(program)
    add_new()
    assert entry_point.main(["gate", "old", "new", *arguments, "--resume"]) == 0


def test_a_resumed_gate_repeats_a_parity_that_failed_and_nothing_else(gate, capsys, monkeypatch):
    monkeypatch.setattr(content, "of_environment", lambda *_, **__: {})  # whose script changes
    assert gate(new={"parity": "user_error"}) == 1
    capsys.readouterr()
    assert gate("--resume") == 0
    assert "parity: NEW" in (err := capsys.readouterr().err)
    assert "parity: OLD" not in err


@pytest.mark.parametrize(
    ("options", "old", "message"),
    [
        ([], {"inspect": "user_error"}, "stele: net.py raised ZeroDivisionError"),
        ([], {"inspection": {**INSPECTION, "deterministic": False}}, "is not deterministic in inference"),
        ([], {"inspection": {**INSPECTION, "parameters": 0}}, "has no parameters to train"),
        ([], {"inspect": "segfault"}, "crashed during 'inspect': killed by SIGSEGV"),
        (["--model=nowhere.py:build"], {}, "there is no file"),
        (["--model=resnet18"], {}, "names no model"),
        (["--optimizer=SGD"], {}, "--optimizer SGD is not of the form module:Class"),
        (["--pretrained=none.safetensors"], {}, "is not an existing .safetensors file"),
        (["--with-project=nowhere"], {}, "nowhere/pyproject.toml"),
    ],
)
def test_a_model_that_cannot_be_measured_is_one_message_and_measures_nothing(
    gate, capsys, options, old, message
):
    assert gate(*options, old=old) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err
    assert "stele_worker" not in err
    assert not Path(".stele/gates").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jax==1 jax==2", "pins one package twice: jax==1 and jax==2"),
        ("jax==1 --index-url=x", "contains the installer option '--index-url=x'"),
        ("my @ git+https://example.org/my", "Allow it with: --allow-vcs"),
        ("none.txt", "none.txt cannot be read"),
        ("net.py@main", "is neither a requirement such as transformers==5.22.0"),
        ("some/python", "There is no interpreter some/python"),
        (".", "is a folder, but not a virtual environment"),
        ("requirements.txt@main", "not in a Git repository"),
    ],
)
def test_an_arm_without_meaning_is_one_message_and_measures_nothing(gate, capsys, text, message, tmp_path):
    assert gate() == 0
    assert entry_point.main(["gate", "old", text, "--model", "net.py:build"]) == 2
    assert message in (err := capsys.readouterr().err)
    assert "Traceback" not in err


def test_inputs_without_meaning_are_a_usage_error(gate, capsys):
    with pytest.raises(SystemExit) as end:
        gate("--input=8x")
    assert end.value.code == 2
    assert "--input '8x' is not an input such as 8x3x64x64" in capsys.readouterr().err


def test_inference_of_a_model_without_parameters_is_measured(gate):
    without = {"inspection": {**INSPECTION, "parameters": 0}}
    assert gate("--phase=infer", old=without, new=without) == 0


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A git repository with a lock file, and the function that changes the lock file."""
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def write(**pins):
        Path("requirements.txt").write_text("".join(f"{name}=={version}\n" for name, version in pins.items()))

    write(jax="0.10.1", jaxlib="0.10.1", keras="3.14.1", numpy="2.0.0")
    identity = ["-c", "user.name=user", "-c", "user.email=user@localhost"]
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], [*identity, "commit", "-q", "-m", "lock"]):
        subprocess.run(["git", *command], check=True)
    return write


def test_changed_without_a_change_passes(repository, capsys):
    assert entry_point.main(["gate", "--changed", "main"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "compared: requirements.txt",
        "No version of a framework differs between main and the working tree in these files.",
    ]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("svc/nope.py:build", "there is no file"),
        ("svc/net.py:bild", "net.py has no 'bild'. Name a model, or a function that returns one."),
        ("svc.nope:build", "there is no module svc.nope in"),
        ("svc.net:bild", "net.py has no 'bild'"),
        ("svc:bild", "__init__.py has no 'bild'"),
        ("recipes/x/jax.py", "there is no file"),
    ],
)
def test_changed_with_a_model_that_is_not_there_is_an_error_although_nothing_changed(
    repository, capsys, model, message
):
    Path("svc").mkdir()
    Path("svc/__init__.py").touch()
    Path("svc/net.py").write_text("def build():\n    pass\n")
    assert entry_point.main(["gate", "--changed", "main", "--model", model]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "model", ["svc/net.py:build", "svc.net:build", "svc/star.py:build", "other.net:build"]
)
def test_changed_with_a_model_that_may_be_there_imports_nothing(repository, model):
    Path("svc").mkdir()
    Path("svc/net.py").write_text("def build():\n    pass\nraise SystemError\n")
    Path("svc/star.py").write_text("from net import *\n")
    assert entry_point.main(["gate", "--changed", "main", "--model", model]) == 0


def test_changed_prints_each_change_and_returns_the_worst_exit_code(repository, monkeypatch, capsys):
    repository(jax="0.10.2", jaxlib="0.10.1", keras="3.15.1", numpy="2.0.0")
    gated, reports = [], []

    def gate_pair(arguments):
        gated.append((arguments.old, arguments.new))
        reports.append(str(arguments.json))
        return 3 if "jax" in arguments.old else 1

    monkeypatch.setattr("stele.commands.gate.gate_pair", gate_pair)
    assert entry_point.main(["gate", "--changed", "main", "--json", "gate.json"]) == 1
    assert reports == ["gate-jax.json", "gate-keras.json"]
    assert gated == [
        ("jax==0.10.1 jaxlib==0.10.1", "jax==0.10.2 jaxlib==0.10.1"),
        ("keras==3.14.1", "keras==3.15.1"),
    ]
    printed = capsys.readouterr().out
    assert "changed: jax 0.10.1 to 0.10.2 in requirements.txt" in printed
    assert printed.splitlines()[-1] == (
        "jax 0.10.1 to 0.10.2 in requirements.txt: exit code 3; "
        "keras 3.14.1 to 3.15.1 in requirements.txt: exit code 1. "
        "All changes together: exit code 1. This is not a pass."
    )


def test_changed_of_a_framework_that_cannot_be_gated_is_an_error_that_names_the_line(repository, capsys):
    repository(jax="0.10.1", jaxlib="0.10.1", numpy="2.0.0")
    assert entry_point.main(["gate", "--changed", "main"]) == 2
    output = capsys.readouterr()
    assert (
        "not gated: requirements.txt, line 3: 'keras==3.14.1' has nothing to be compared with" in output.out
    )
    assert "A framework changed between main and the working tree, and nothing can be gated." in output.err


def test_changed_with_a_file_that_cannot_be_read_does_not_say_that_a_framework_changed(repository, capsys):
    with Path("requirements.txt").open("a") as file:
        file.write("-c constraint.txt\n")
    assert entry_point.main(["gate", "--changed", "main"]) == 2
    output = capsys.readouterr()
    assert "line 5: '-c constraint.txt' names a file that cannot be read" in output.out
    assert "it is unknown whether a framework changed. Correct the line that is named above" in output.err


def test_changed_without_a_file_of_packages_is_an_error(repository, capsys):
    subprocess.run(["git", "mv", "requirements.txt", "words"], check=True)
    subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qam", "words"], check=True
    )
    assert entry_point.main(["gate", "--changed", "HEAD"]) == 2
    assert "There is nothing to compare: neither 'HEAD' nor the working tree" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("codes", "expected"), [((0, 0), 0), ((3, 0), 3), ((2, 3), 2), ((2, 0), 2), ((2, 1), 1)]
)
def test_of_several_gates_one_that_is_impossible_does_not_prevent_the_others(
    repository, monkeypatch, capsys, codes, expected
):
    repository(jax="0.10.2", jaxlib="0.10.1", keras="3.15.1", numpy="2.0.0")
    given = iter(codes)

    def gate_pair(_):
        code = next(given)
        if code == 2:
            raise SteleError("https://ada:secret@example.org does not answer.")
        return code

    monkeypatch.setattr("stele.commands.gate.gate_pair", gate_pair)
    assert entry_point.main(["gate", "--changed", "main"]) == expected
    assert next(given, None) is None
    assert "secret" not in (err := capsys.readouterr().err)
    assert ("stele: https://ada:***@example.org does not answer." in err) == (2 in codes)


def test_changed_in_a_subfolder_names_its_files_from_the_root(repository, monkeypatch, capsys):
    Path("train").mkdir()
    Path("train/requirements.txt").write_text("-r ../base.txt\n")
    Path("train/net.py").write_text("build = None\n")
    subprocess.run(["git", "mv", "requirements.txt", "base.txt"], check=True)
    subprocess.run(["git", "add", "-A"], check=True)
    identity = ["-c", "user.name=user", "-c", "user.email=user@localhost"]
    subprocess.run(["git", *identity, "commit", "-q", "-m", "base"], check=True)
    Path("base.txt").write_text("jax==0.10.2\njaxlib==0.10.1\nkeras==3.14.1\nnumpy==2.0.0\n")
    monkeypatch.chdir("train")
    gated = []
    monkeypatch.setattr("stele.commands.gate.gate_pair", lambda arguments: gated.append(arguments) or 0)
    assert entry_point.main(["gate", "--changed", "main", "--model", "net.py:build"]) == 0
    assert [(one.old, one.new) for one in gated] == [
        ("train/requirements.txt@main", "train/requirements.txt with jax 0.10.2")
    ]
    assert capsys.readouterr().out.splitlines() == [
        "compared: train/requirements.txt, base.txt (included by train/requirements.txt)",
        "changed: jax 0.10.1 to 0.10.2 in train/requirements.txt (base.txt)",
    ]


def test_changed_beside_a_package_from_a_url_is_no_pass(repository, monkeypatch):
    repository(jax="0.10.2", jaxlib="0.10.2", numpy="2.0.0")
    with Path("requirements.txt").open("a") as file:
        file.write("keras @ https://example.org/keras-4-py3-none-any.whl\n")
    for code, expected in ((0, 2), (3, 2), (1, 1)):
        monkeypatch.setattr("stele.commands.gate.gate_pair", lambda _, code=code: code)
        assert entry_point.main(["gate", "--changed", "main"]) == expected


def test_a_built_in_task_says_which_packages_of_the_file_it_does_not_use(repository, monkeypatch, capsys):
    repository(jax="0.10.2", jaxlib="0.10.2", keras="3.14.1", numpy="2.1.0")
    monkeypatch.setattr("stele.commands.gate.gate_pair", lambda _: 0)
    assert entry_point.main(["gate", "--changed", "main"]) == 0
    out = capsys.readouterr().out
    assert (
        "changed, but not gated: numpy 2.0.0 to 2.1.0 in requirements.txt. The built-in tasks do not use"
        in out
    )


@pytest.mark.parametrize(("jax", "code"), [("0.10.1", 0), ("0.10.2", 2)])
def test_a_change_that_upgrades_nothing_passes_if_no_framework_changed(
    repository, monkeypatch, capsys, jax, code
):
    def gate_pair(_):
        raise NothingUpgradedError("Nothing is upgraded.")

    repository(jax=jax, jaxlib="0.10.1", keras="3.14.1", numpy="2.1.0")
    Path("net.py").write_text("build = None\n")
    monkeypatch.setattr("stele.commands.gate.gate_pair", gate_pair)
    assert entry_point.main(["gate", "--changed", "main", "--model", "net.py:build"]) == code
    said = "not measured: requirements.txt@main and the working tree install the same packages."
    assert (said in capsys.readouterr().out) == (code == 0)


@pytest.fixture
def changed(add_environment, tmp_path, monkeypatch):
    """changed({name: script of NEW}, ungated) -> the exit code of --changed with such gates and all reports."""
    (tmp_path / "net.py").write_text("build = None\n")
    script = {"seconds": SECONDS, "numbers": NUMBERS, "inspection": INSPECTION}

    def changed(gates, ungated=(), *, blocked=False, options=()):
        add_environment("old", **script)
        pairs = []
        for number, (name, of_new) in enumerate(gates.items()):
            add_environment(f"new{number}", **{**script, **of_new})
            contents = (Locked((), None, "requirements"),) * 2
            pairs.append(
                changes.Pair("old", f"new{number}", contents, f"jax 1 to 2 in {name}", name, frozenset())
            )
        found = changes.Changed([], pairs, [*ungated], blocked, [], [])
        monkeypatch.setattr("stele.models.changes.find", lambda *_, **__: found)
        reports = ("--json=gate.json", "--markdown=gate.md", "--junit=gate.xml")
        command = ["gate", "--changed", "main", "--model=net.py:build", "--metric=parity", *reports, *options]
        return entry_point.main(command)

    return changed


ADDED = "b.txt, line 1: 'keras==3' has nothing to be compared with"


def test_a_gate_that_passes_beside_a_change_without_a_gate_is_no_pass_in_any_report(changed, capsys):
    assert changed({"a.txt": {}}, [ADDED], blocked=True) == 2
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"not gated: {ADDED}. All changes together: exit code 2. This is not a pass."
    page = Path("gate.md").read_text()
    assert page.startswith(
        "# INCONCLUSIVE: old to new0\n\nAll changes together: exit code 2. This is not a pass."
    )
    assert "not gated: b.txt, line 1" in page and "Upgrade to" not in page
    document = json.loads(Path("gate.json").read_text())
    assert document["status"] == "INCONCLUSIVE"
    assert document["together"] == {"code": 2, "lines": [f"not gated: {ADDED}"]}
    assert (
        'errors="1"' in (suite := Path("gate.xml").read_text()) and "exit code 2. This is not a pass" in suite
    )
    [path] = Path(".stele/gates").glob("*.jsonl")
    for source in (path, Path("gate.json")):
        assert entry_point.main(["report", str(source), "--markdown=again.md"]) == 0
        assert (
            Path("again.md")
            .read_text()
            .startswith("# INCONCLUSIVE: old to new0\n\nAll changes together: exit code 2.")
        )


def test_a_change_without_a_gate_that_does_not_block_is_in_every_report_of_a_pass(changed, capsys):
    assert changed({"a.txt": {}}, [ADDED]) == 0
    assert (
        capsys.readouterr().out.splitlines()[-1] == f"not gated: {ADDED}. All changes together: exit code 0."
    )
    page = Path("gate.md").read_text()
    assert page.startswith("# PASS: old to new0") and "not gated: b.txt, line 1" in page
    assert json.loads(Path("gate.json").read_text())["status"] == "PASS"


def test_the_report_of_a_gate_that_passes_says_what_the_other_gates_say(changed, capsys):
    assert changed({"a.txt": {}, "a_txt": {"parity": "user_error"}}) == 1
    assert sorted(path.name for path in Path().glob("gate*")) == [
        f"gate-{name}.{kind}" for name in ("a.txt", "a_txt") for kind in ("json", "md", "xml")
    ]
    page = Path("gate-a.txt.md").read_text()
    assert page.startswith("# INCONCLUSIVE") and "jax 1 to 2 in a\\_txt: exit code 1" in page
    assert Path("gate-a_txt.md").read_text().startswith("# BROKEN")
    assert "jax 1 to 2 in a_txt: exit code 1. All changes together: exit code 1." in capsys.readouterr().out


def test_a_gate_that_is_interrupted_leaves_the_reports_of_the_others_and_they_say_so(changed, monkeypatch):
    gate_pair = gate_command.gate_pair

    def interrupted(arguments):
        if arguments.new == "new1":
            raise KeyboardInterrupt
        return gate_pair(arguments)

    monkeypatch.setattr(gate_command, "gate_pair", interrupted)
    assert changed({"a.txt": {}, "b.txt": {}}) == 130
    document = json.loads(Path("gate-a.txt.json").read_text())
    assert (document["status"], document["together"]["code"]) == ("INCONCLUSIVE", 2)
    assert document["together"]["lines"][1] == "jax 1 to 2 in b.txt: its gate did not end"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["jax", "jax", "keras"], ["jax", "jax-2", "keras"]),
        (["a/b.txt", "a_b.txt", "A_b.txt"], ["a_b.txt", "a_b.txt-2", "A_b.txt-3"]),
        (["x-2", "x", "x"], ["x-2", "x", "x-3"]),
    ],
)
def test_every_gate_of_a_command_has_reports_of_its_own(names, expected):
    assert gate_command.unique(names) == expected


@pytest.mark.parametrize("name", ["requirements.txt", "c.txt", "base.txt", "sub/pins.txt"])
@pytest.mark.parametrize("folder", [".", "train"])
def test_no_file_that_was_compared_is_overwritten_also_from_a_subfolder(
    repository, monkeypatch, capsys, name, folder
):
    repository(jax="0.10.2")
    files = {"base.txt": "numpy==2.0.0\n", "c.txt": "-r base.txt\nscipy==1\n", "sub/pins.txt": "x==1\n"}
    for file, text in {**files, "m.py": "model = None\n", "train/m.py": "model = None\n"}.items():
        Path(file).parent.mkdir(exist_ok=True)
        Path(file).write_text(text)
    subprocess.run(["git", "add", "-A"], check=True)
    root = Path.cwd()
    before = {path: path.read_bytes() for path in root.rglob("*.txt")}
    monkeypatch.chdir(folder)
    report = os.path.relpath(root / name)
    command = ["gate", "--changed", "main", "--model", "m.py:model", "--json", report]
    assert entry_point.main(command) == 2
    assert f"--json {report} would replace" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in root.rglob("*.txt")} == before


def test_many_compared_files_are_counted_and_the_first_are_named():
    names = [f"{number}.txt" for number in range(20)]
    assert shortened(names[:3]) == "0.txt, 1.txt, 2.txt"
    assert shortened(names) == f"20 files: {', '.join(names[:8])}, ..."


def test_changed_of_an_unknown_revision_is_an_error(repository, capsys):
    assert entry_point.main(["gate", "--changed", "maim"]) == 2
    assert "main" in capsys.readouterr().err


def test_the_record_of_a_model_says_which(gate):
    gate()
    [path] = Path(".stele/gates").glob("*.jsonl")
    header = json.loads(path.read_text().splitlines()[0])
    assert header["model"]["spec"] == "net.py:build"
    assert header["model"]["inputs"] == INSPECTION["inputs"]


def test_bisect_names_the_release_that_is_slower_on_a_model(gate, monkeypatch, capsys, add_environment):
    gate()
    slow = {"seconds": [1.3 * value for value in SECONDS], "numbers": NUMBERS, "inspection": INSPECTION}
    fast = {**slow, "seconds": SECONDS}
    for version, script in (("1.0", fast), ("1.1", fast), ("1.2", slow), ("1.3", slow)):
        add_environment(f"abacus-{version}", **script)
    assert bisect_abacus(monkeypatch) == 0
    assert "The first bad candidate is abacus-1.2." in capsys.readouterr().out


def bisect_abacus(monkeypatch):
    names = [f"abacus-1.{number}" for number in range(4)]
    monkeypatch.setattr("stele.releases.candidates.select_requirements", lambda *ends: names)
    command = ["bisect", "abacus", "1.0", "1.3", "--model=net.py:build", "--metric=step", "--budget=10m"]
    return entry_point.main(command)


def test_bisect_asks_each_release_and_skips_one_that_builds_another_model(
    gate, monkeypatch, capsys, add_environment
):
    gate()
    fast = {"seconds": SECONDS, "numbers": NUMBERS, "inspection": INSPECTION}
    slow = {**fast, "seconds": [1.3 * value for value in SECONDS]}
    other = {**slow, "inspection": {**INSPECTION, "output": [8, 4]}}
    add_environment("abacus-1.0", **{**fast, "inspection": {**INSPECTION, "output": [8, 3]}})
    for version, script in (("1.1", fast), ("1.2", other), ("1.3", slow)):
        add_environment(f"abacus-{version}", **script)
    assert bisect_abacus(monkeypatch) == 3
    out = capsys.readouterr().out
    assert "skip  abacus-1.2: the output has shape 8x4 in NEW, 8x3 in OLD" in out
    assert "one of these; some of them gave no verdict: abacus-1.2, abacus-1.3" in out


def test_parity_compares_a_model_in_two_environments(gate, capsys):
    gate()
    capsys.readouterr()
    assert entry_point.main(["parity", "--model=net.py:build", "--framework=old,new"]) == 0
    assert "PASS  old to new: equal to OLD" in capsys.readouterr().out
    assert entry_point.main(["parity", "--model=net.py:build", "--framework=old"]) == 2
    assert "Name at least two: --framework" in capsys.readouterr().err


def test_an_extra_without_a_lock_file_is_refused(capsys):
    assert entry_point.main(["gate", "jax==0.10.1", "jax==0.10.2", "--extra", "cpu", "--no-wait"]) == 2
    assert "--extra selects packages of a lock file or of --with-project." in capsys.readouterr().err


def test_a_gate_reads_no_data_writes_into_one_folder_and_never_runs_the_users_code(
    gate, tmp_path, monkeypatch
):
    gate()  # which describes the environments
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(measure.data, "load", lambda name: pytest.fail("read data"))
    monkeypatch.setattr(measure.data.download, "fetch", lambda *_: pytest.fail("downloaded"))
    (tmp_path / "net.py").write_text("raise SystemExit('the host ran the code of the user')")
    before = {*tmp_path.iterdir()}
    assert gate("--phase=infer", "--budget=60s", "--json=report.json", metric="parity,host-memory") == 0
    assert {path.name for path in {*tmp_path.iterdir()} - before} == {"cache", "report.json"}


def test_both_phases_of_a_model_are_judged(gate, capsys):
    assert gate("--budget=60s", metric="host-memory") == 0
    out = " ".join(capsys.readouterr().out.split())
    for phase in ("train", "infer"):
        assert f"PASS net.py:build {phase} host-memory" in out


def test_the_verdict_on_parity_states_the_tolerance_and_the_rounding(gate, capsys):
    changed = {**NUMBERS, "logits": [1.0, 0.5, 0.25 * (1 + 1e-6)]}
    assert gate(new={"numbers": changed}) == 0
    out = capsys.readouterr().out
    assert "largest relative error" in out and "tolerance 1e-05" in out
    assert re.search(r"Rounding in OLD: 0\.0e\+00 with \d threads?, 0\.0e\+00 with the batch reversed", out)


def test_changed_finds_both_arms_so_they_are_left_out(repository, capsys):
    assert entry_point.main(["gate", "a", "b", "--changed", "main"]) == 2
    assert "--changed finds OLD and NEW itself. Leave them out." in capsys.readouterr().err
