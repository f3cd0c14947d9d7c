"""The examples below the help of a command."""

import shlex

import pytest

from stele import __main__ as entry_point
from stele.commands import examples, options

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
    entry_point.parser().parse_args(options.split_program(words)[0])


def test_the_examples_are_below_the_help_and_exit_codes_stay(capsys):
    with pytest.raises(SystemExit):
        entry_point.main(["gate", "--help"])
    shown = capsys.readouterr().out
    assert shown.index("Exit: 0 pass;") < shown.index("Examples:\n  stele gate jax==0.10.1")


@pytest.mark.parametrize("name", PARSERS)
def test_every_help_page_has_a_description_and_the_exit_codes(name):
    assert PARSERS[name].description.endswith(".") and PARSERS[name].description[0].isupper()
    assert "Exit: 0 " in PARSERS[name].epilog and "2 usage or" in " ".join(PARSERS[name].epilog.split())


def test_the_commands_are_in_groups_of_which_each_has_its_title(capsys):
    with pytest.raises(SystemExit):
        entry_point.main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    for command, title in entry_point.GROUPS.items():
        assert lines[lines.index(f"  {title}:") + 1].split()[0] == command
