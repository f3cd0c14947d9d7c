"""The verdicts on what items of a program did, from made-up launches."""

import itertools
import random
from pathlib import Path

import pytest

from stele.gate import behaviour_verdicts, judgement
from stele.gate.trial import ARMS
from stele.measuring.answers import ItemOutcome
from stele.subjects import programs
from stele.subjects.errors import SubjectError

SUITE = programs.Tests(("pytest",), Path())


def entry(items, not_collected=(), failure=None, whole=True):
    return {"whole": whole, "items": items, "not_collected": list(not_collected), "failure": failure}


def a_pass(**failing):
    """Return a pass of the tests "good" and of those named, which fail in some arms."""
    names = ["good", *failing]
    return {
        arm: entry(
            {
                name: ItemOutcome(status="failed" if arm in failing.get(name, ()) else "passed", message="assert 0")
                for name in names
            }
        )
        for arm in ARMS
    }


def test_two_failures_of_new_are_suspected_and_not_yet_certain():
    judged = behaviour_verdicts.judge(SUITE, [a_pass(bad=("new", "repeat"))])
    assert judged.suspects == ["bad"]
    assert [(each.task, each.status) for each in judged.verdicts] == [("bad", "INCONCLUSIVE"), ("pytest", "PASS")]


def test_more_passes_make_it_certain_and_many_such_tests_need_fewer():
    def passes_needed(count):
        failing = {f"bad{number}": ("new", "repeat") for number in range(count)}
        for passes in itertools.count(1):
            judged = behaviour_verdicts.judge(SUITE, [a_pass(**failing)] * passes)
            if not judged.suspects:
                assert {each.status for each in judged.verdicts if each.task != "pytest"} == {"BROKEN"}
                return passes

    assert (passes_needed(1), passes_needed(30)) == (4, 3)


@pytest.mark.parametrize(
    ("failing", "state"),
    [
        (ARMS, "fails in both"),
        (("old", "control"), "fixed"),
        (("old", "new"), "flaky"),
        (("control",), "flaky"),
    ],
)
def test_what_is_not_certainly_worse_in_new_is_named_and_passes(failing, state):
    judged = behaviour_verdicts.judge(SUITE, [a_pass(odd=failing)])
    [verdict] = judged.verdicts
    assert verdict.status == "PASS" and f"1 {state}: odd" in verdict.message and not judged.suspects


def alone(of_pass):
    return {arm: {**of_arm, "whole": False} for arm, of_arm in of_pass.items()}


def test_a_failure_that_needs_the_tests_before_it_is_judged_by_runs_of_all_tests():
    whole, without_others = a_pass(bad=("new", "repeat")), alone(a_pass(bad=()))
    judged = behaviour_verdicts.judge(SUITE, [whole, without_others])
    assert judged.whole and judged.suspects == ["bad"]
    judged = behaviour_verdicts.judge(SUITE, [whole, without_others, *[whole] * 3])
    assert [each.status for each in judged.verdicts] == ["BROKEN", "PASS"] and not judged.suspects


def test_a_failure_with_one_number_of_threads_is_found():
    judged = behaviour_verdicts.judge(SUITE, [a_pass(bad=("new",))] * 11)
    assert judged.verdicts[0].status == "BROKEN"


def test_a_suite_in_which_nothing_passes_in_old_is_no_verdict():
    failing = {arm: entry({"a": ItemOutcome(status="error", message="fixture 'x' not found")}) for arm in ARMS}
    with pytest.raises(SubjectError, match="a fails in OLD: fixture 'x' not found"):
        behaviour_verdicts.judge(SUITE, [failing])


def test_flaky_tests_give_a_false_alarm_in_at_most_one_gate_of_a_hundred():
    """Each gate has five tests that fail at random as often in OLD as in NEW."""
    draw, alarms, gates = random.Random(0), 0, 200
    for _ in range(gates):
        names, passes = [f"t{number}" for number in range(5)], []
        while names and len(passes) < behaviour_verdicts.MOST_PASSES:
            failing = {name: [arm for arm in ARMS if draw.random() < 0.3] for name in names}
            passes.append(a_pass(**failing))
            judged = behaviour_verdicts.judge(SUITE, passes)
            names = judged.suspects
        alarms += any(verdict.status == "BROKEN" for verdict in judged.verdicts)
    assert alarms <= gates * judgement.LEVEL


def test_e_bh_keeps_the_level_if_nothing_changed_and_finds_many_changes_sooner():
    needed = judgement.certainty(100)
    assert judgement.certain_together({"a": needed + 0.01}, 100) == {"a"}
    assert judgement.certain_together({"a": needed - 0.01}, 100) == set()
    both = {"a": needed - 0.6, "b": needed - 0.6}
    assert judgement.certain_together(both, 100) == {"a", "b"}
    assert judgement.certain_together({}, 100) == set()


def test_why_new_does_not_start_is_its_first_line_and_its_last_line_of_code():
    failure = 'lib.py:f raised ImportError: gone\n  File "lib.py", line 2\n    import gone\n           ^^^^\n'
    said = behaviour_verdicts.start_of(entry({}, failure=failure))
    assert said.message == "lib.py:f raised ImportError: gone … import gone"
