"""The program of a record."""

from pathlib import Path

import pytest

from stele import subjects
from stele.subjects import programs


@pytest.mark.parametrize("kind", sorted(programs.KINDS))
def test_the_header_of_a_record_says_which_program_it_is(kind):
    program = programs.KINDS[kind](("pytest", "tests"), Path(), accept="rounding" if kind == "tests" else None)
    again = subjects.of_header(program.facts())
    assert (type(again), again.label, again.accept) == (type(program), program.label, program.accept)
