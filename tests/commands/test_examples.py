"""The examples below the help of a command."""

import shlex

import pytest

from stele import __main__ as entry_point
from stele.commands import examples

PARSERS = dict(examples.parsers(entry_point.parser()))
LINES = [(name, line) for name, lines in examples.EXAMPLES.items() for line in lines]


# examples


def test_every_command_has_examples_and_no_other_has():
    assert set(PARSERS) == set(examples.EXAMPLES)
    assert all(examples.EXAMPLES.values())


@pytest.mark.parametrize("name, line", LINES, ids=[line for _, line in LINES])
def test_every_example_is_a_command_that_the_parser_accepts(name, line):
    program, *words = shlex.split(line.partition(" > ")[0])
    assert program == "stele" and (name == "" or " ".join(words).startswith(name))
    entry_point.parser().parse_args(words)


def test_the_examples_are_below_the_help_and_exit_codes_stay(capsys):
    with pytest.raises(SystemExit):
        entry_point.main(["gate", "--help"])
    shown = capsys.readouterr().out
    assert shown.index("Exit: 0 pass;") < shown.index("Examples:\n  stele gate jax==0.10.1")
