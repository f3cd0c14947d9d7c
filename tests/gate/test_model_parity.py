"""Whether NEW computes what OLD computes of a model of the user, whose workers are scripted."""

import json
import re
from pathlib import Path

import pytest

from stele.gate import model_parity, record, replay
from stele.measuring import content, processors
from stele.measuring.worker import WorkerError
from tests.support.gates import BUILT, HALF, NUMBERS, SKETCH
from tests.support.scripted_environments import INSPECTION


def test_a_model_that_computes_the_same_passes(model_gate, capsys):
    assert model_gate() == 0
    output = capsys.readouterr()
    assert "Scripted: 12 parameters; inputs 8x3 from the signature" in output.err
    assert "\n  parity         equal to OLD" in output.out
    assert "PASS  old → new\n" in output.out


def test_the_first_layer_that_differs_is_named(model_gate, capsys):
    layers = {"first": SKETCH, "second": [1.0, 0.6, 0.25]}
    assert model_gate(new={"numbers": {**NUMBERS, "layers": layers, "logits": [1.0, 0.6, 0.25]}}) == 1
    out = capsys.readouterr().out
    assert "BROKEN" in out
    assert "NEW differs from OLD: layers differ (rung 2): output of second: relative error 0.1" in out


def test_a_new_release_in_which_the_model_fails_is_broken(model_gate, capsys):
    assert model_gate(new={"parity": "user_error"}) == 1
    assert "NEW: net.py raised ZeroDivisionError" in capsys.readouterr().out


@pytest.mark.parametrize("options", [(), ("--budget=1s",)], ids=["enough", "no budget"])
def test_an_exception_that_new_repeats_is_broken_after_two_launches(model_gate, capsys, options):
    assert model_gate(*options, new={"parity": "user_error"}) == 1
    [path] = Path(".stele/gates").glob("*.jsonl")
    entries = {tuple(one["key"]): one for one in map(json.loads, path.read_text().splitlines()[1:])}
    assert entries["model parity", "new"]["launches"] == 2
    assert ("model parity", "OLD, launch 3") not in entries


@pytest.mark.slow
def test_a_crash_of_new_is_looked_at_again_only_while_the_budget_lasts(model_gate, capsys):
    assert model_gate("--budget=0.001s", new={"parity": "segfault"}) == 3
    assert "NEW failed in 2 launches, too few to exclude chance" in capsys.readouterr().out
    assert model_gate(new={"parity": "segfault"}) == 1


ALBERT = [{"name": name, "kind": "int", "shape": [2, 9], "high": 64} for name in ("ids", "token_type_ids")]
PAIR = {**BUILT, "arrays": [{**BUILT["arrays"][0], "name": name, "shape": [6]} for name in ("w", "head")]}
TIED = {**PAIR, "tied": [["w", "head"]]}


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
def test_a_model_that_new_builds_in_another_way_is_broken(model_gate, capsys, old, new, message):
    arms = {
        name: {"inspection": {**INSPECTION, "inferred_from": "example_inputs()", **changes}}
        for name, changes in (("old", old), ("new", new))
    }
    assert model_gate(**arms) == 1
    assert f"NEW differs from OLD: {message}" in capsys.readouterr().out
    [path] = Path(".stele/gates").glob("*.jsonl")
    assert next(iter(replay.judge(record.read(path)))).message.startswith("NEW differs")


def outputs_of(*names):
    facts = [{"name": name, "shape": [8, 2], "dtype": "float32"} for name in names]
    return {"inspection": {**INSPECTION, "outputs": facts, "main": names[0]}}


def test_an_output_that_new_lacks_is_broken(model_gate, capsys):
    assert model_gate(old=outputs_of("logits", "boxes"), new=outputs_of("logits")) == 1
    assert "NEW differs from OLD: the output boxes is missing in NEW" in capsys.readouterr().out


def test_what_a_model_returns_and_cannot_be_compared_is_named_in_the_verdict(model_gate, capsys):
    numbers = {**NUMBERS, "ignored": ["aux (Thing)"]}
    assert model_gate(old={"numbers": numbers}, new={"numbers": numbers}) == 0
    assert capsys.readouterr().out.count("no arrays, numbers or texts: output aux (Thing)") == 1


@pytest.mark.parametrize("changed", ["boxes", "cache.2", "aux"])
def test_an_output_beside_the_first_that_differs_is_broken(model_gate, capsys, changed):
    old = {name: {"shape": [2], "numbers": [1.0, 2.0]} for name in ("boxes", "cache.2", "aux")}
    new = {**old, changed: {"shape": [2], "numbers": [1.0, 2.2]}}
    assert model_gate(old={"numbers": {**NUMBERS, "outputs": old}}, new={"numbers": {**NUMBERS, "outputs": new}}) == 1
    assert f"the output {changed} differs (rung 3): relative error 0.1" in capsys.readouterr().out


@pytest.mark.slow
def test_without_parity_a_difference_is_said_and_time_is_measured(model_gate, capsys):
    new = {"inspection": {**INSPECTION, "output": [8, 8]}}
    old = {"inspection": {**INSPECTION, "output": [8, 2]}}
    assert model_gate("--phase=infer", "--budget=60s", old=old, new=new, metric="host-memory") == 0
    assert "NEW differs from OLD: the output has shape 8x8 in NEW" in capsys.readouterr().err


@pytest.mark.parametrize("metric", ["parity", "step"])
@pytest.mark.parametrize("action", ["user_error", "segfault"])
def test_a_new_release_in_which_the_model_cannot_be_built_is_broken(model_gate, capsys, metric, action):
    assert model_gate(new={"inspect": action}, metric=metric) == 1
    output = capsys.readouterr()
    assert {"user_error": "NEW: net.py raised ZeroDivisionError", "segfault": "SIGSEGV"}[action] in output.out
    assert not re.search("^  parity +OLD", output.err, flags=re.M)


@pytest.mark.parametrize(("arm", "code"), [("old", 2), ("new", 1)])
def test_the_environment_that_lacks_a_module_of_the_users_code_is_named(model_gate, capsys, arm, code):
    assert model_gate(**{arm: {"inspect": "missing_module"}}) == code
    output = capsys.readouterr()
    assert f"The environment of {arm} has no module 'flax'. Check the spelling" in " ".join(
        (output.out + output.err).split()
    )


def launches(capsys):
    """The launches of parity in the order in which they began, as the command prints them."""
    return re.findall(r"^  parity +((?:OLD|NEW)[^:\n]*)", capsys.readouterr().err, flags=re.M)


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
def test_a_model_that_is_different_in_each_process_is_refused(model_gate, capsys, own, what):
    assert model_gate(old={"own": own}) == 2
    err = capsys.readouterr().err
    assert "net.py:build computes something else in each process of OLD, although everything is equal." in err
    assert what in err
    assert not re.search("^  parity +NEW", err, flags=re.M)
    [path] = Path(".stele/gates").glob("*.jsonl")
    assert "in each process of OLD" in next(iter(replay.judge(record.read(path)))).message


@pytest.mark.parametrize("changes", [{"logits": [1.0, None]}, {"loss": None}])
def test_an_old_release_without_finite_outputs_is_an_error_of_the_user(model_gate, capsys, changes):
    assert model_gate(old={"numbers": {**NUMBERS, **changes}}) == 2
    assert "of OLD" in (err := capsys.readouterr().err)
    assert "not finite" in err


def test_a_failure_that_repeats_itself_needs_no_more_launches_of_old(model_gate, capsys):
    assert model_gate(new={"parity": "user_error"}) == 1
    assert launches(capsys)[-1] == "NEW"


def test_a_launch_that_fails_beside_others_is_repeated_alone(model_gate, capsys, monkeypatch):
    """There may be too little memory for all."""
    tried = []

    def fail_beside_others(*arguments):
        tried.append(arguments)
        if len(tried) in (2, 3, 4):
            raise WorkerError("killed")
        return entry_of(*arguments)

    entry_of = model_parity.entry_of
    monkeypatch.setattr(model_parity, "entry_of", fail_beside_others)
    monkeypatch.setattr(processors, "lanes", lambda *_, **__: [[0], [0]])
    assert model_gate() == 0
    assert len(launches(capsys)) == 5 and len(tried) == 7


def test_of_failures_that_are_not_alike_old_is_launched_as_often_as_new(model_gate, capsys):
    assert model_gate(new={"parity": "other_error"}) == 1
    assert launches(capsys)[-2:] == ["NEW", "OLD, launch 4"]


def test_a_pretrained_file_that_does_not_fit_new_is_an_error_of_the_user(model_gate, capsys):
    assert model_gate(new={"inspect": "unfit_weights"}) == 2
    assert "new: The weights lack 'gate.weight'" in (err := capsys.readouterr().err)
    assert "--weights-map FILE" in err


def test_a_file_that_was_matched_by_shape_is_said(model_gate, capsys):
    remark = "The weights have other names than the model. By their shapes, 'a.bias' gets 'zzz'."
    model_gate(old={"inspection": {**INSPECTION, "remark": remark}})
    assert remark in capsys.readouterr().err


@pytest.mark.parametrize("arm", ["old", "new"])
@pytest.mark.parametrize("verb", ["parity", "inspect", "train"])
def test_a_mistake_of_stele_is_no_verdict(model_gate, capsys, arm, verb):
    assert model_gate(metric="parity,step" if verb == "train" else "parity", **{arm: {verb: "internal_error"}}) == 4
    output = capsys.readouterr()
    assert "This is an error in Stele, not a verdict." in output.err
    assert "name 'nets' is not defined" in output.err
    assert "BROKEN" not in output.out and "INCONCLUSIVE" not in output.out


def test_an_old_release_in_which_parity_fails_gives_no_verdict(model_gate, capsys):
    assert model_gate(old={"parity": "raise_error"}) == 3
    assert "no such kernel" in capsys.readouterr().out


def test_a_resumed_gate_repeats_a_parity_that_failed_and_nothing_else(model_gate, capsys, monkeypatch):
    monkeypatch.setattr(content, "of_environment", lambda *_, **__: {})  # whose script changes
    assert model_gate(new={"parity": "user_error"}) == 1
    capsys.readouterr()
    assert model_gate("--resume") == 0
    assert launches(capsys) == ["NEW"]
