"""What all programs of the user have in common."""

from pathlib import Path

import pytest

from stele.environments import ORACLE
from stele.measuring.content import Reads
from stele.subjects import Cell, programs
from stele.subjects.programs.base import LAUNCH, LONGEST, of_launch

SUITE = programs.Tests(("pytest", "tests"), Path("/project"))


@pytest.mark.parametrize(
    ("seconds", "rounds", "calls"),
    [(1e-6, 24, 10_000), (1e-3, 24, 10), (0.05, 10, 1), (0.2, 5, 1), (10.0, 5, 1)],
)
def test_a_round_has_so_many_calls_that_it_takes_about_as_long(seconds, rounds, calls):
    assert of_launch({"seconds": seconds, "calls": 1, "rounds": 1}) == (rounds, calls)
    assert seconds > LAUNCH or rounds * calls * seconds <= 2 * LAUNCH


def test_items_that_are_timed_are_cells_and_their_plan_says_how_often():
    timing = {"seconds": 1e-3, "calls": 1, "rounds": 5}
    timed = programs.Tests(("pytest",), Path("/project"), timings={"test_a.py::test_a": timing})
    [cell] = timed.cells()
    assert cell == Cell("test_a.py::test_a", "benchmark") and SUITE.cells() == ()
    plan = timed.plan(cell, "gate")
    assert (plan.program, plan.verb, plan.options.steps, plan.options.batch) == ("tests", "rounds", 24, 10)
    assert plan.options.limit is None


def test_the_rounds_of_a_function_are_limited():
    timing = {"seconds": 1e-3, "calls": 1, "rounds": 5}
    timed = programs.Function(("file.py:f",), Path("/project"), timings={"file.py:f": timing})
    assert timed.plan(timed.cells()[0], "gate").options.limit == LONGEST


def test_files_that_a_launch_has_read_decide_what_is_measured():
    read = SUITE.with_reads(Reads((Path("/project/data.csv"),), variables=("SIZE",)))
    assert read.files(ORACLE) == [Path("/project/data.csv")]
    assert read.variables == ("SIZE",)
