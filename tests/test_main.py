import argparse
from importlib import metadata

import pytest

from stele import __main__ as entry_point


def test_an_error_is_one_message_with_exit_code_two(tmp_path, capsys):
    assert entry_point.main(["table", "--steps", f"--runs={tmp_path}"]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("stele: There are no Runs to show.")
    assert "Traceback" not in captured.err


def subcommands(parser, names=()):
    """Yield the names of every command and of its subcommands, as a list."""
    yield list(names)
    for action in parser._actions:
        for name, subparser in action.choices.items() if isinstance(action, argparse._SubParsersAction) else ():
            yield from subcommands(subparser, (*names, name))


@pytest.mark.parametrize("names", list(subcommands(entry_point.parser())), ids=" ".join)
def test_every_command_has_a_help_page(names, capsys):
    with pytest.raises(SystemExit) as exit_info:
        entry_point.main([*names, "--help"])
    assert exit_info.value.code == 0
    assert capsys.readouterr().out.startswith(" ".join(["usage: stele", *names]))


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as exit_info:
        entry_point.main(["--version"])
    assert exit_info.value.code == 0
    assert capsys.readouterr().out == f"stele {metadata.version('pytest-stele')}\n"


def test_an_unknown_command_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as exit_info:
        entry_point.main(["polish"])
    assert exit_info.value.code == 2


def test_an_error_quotes_a_value_without_its_control_characters(capsys):
    assert entry_point.main(["gate", "a\x1b[31m==1", "b"]) == 2
    assert "\x1b" not in capsys.readouterr().err
