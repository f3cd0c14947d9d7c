"""What is wrong on a command line."""

import pytest

from stele import __main__ as entry_point


@pytest.mark.parametrize(
    ("line", "message", "command"),
    [
        (
            ["gate", "a", "b", "--modle", "net.py:build"],
            "unknown option --modle. Did you mean --model?",
            "stele gate",
        ),
        (
            ["gate", "a", "b", "--modle=net.py:build"],
            "unknown option --modle. Did you mean --model?",
            "stele gate",
        ),
        (["gate", "a", "b", "--zzzzzz"], "unknown option --zzzzzz.", "stele gate"),
        (["gate", "a", "b", "c"], "unexpected argument 'c'.", "stele gate"),
        (["fleet", "gate", "a", "b", "--adress=auto"], "Did you mean --address?", "stele fleet gate"),
        (
            ["gate", "a", "b", "--device=cuad"],
            "Unknown value 'cuad' for --device. Did you mean 'cuda'?",
            "stele gate",
        ),
        (["gat", "a", "b"], "Unknown command 'gat'. Did you mean 'gate'?", "stele"),
        (["fleet", "gat"], "Unknown command 'gat'. Did you mean 'gate'?", "stele fleet"),
        (
            ["gate", "a", "b", "--budget=5x"],
            "'5x' is not a duration above 0. Write it as 90s, 20m or 1.5h.",
            "stele gate",
        ),
        (["gate", "a", "b", "--input=8x"], "'8x' is not an input such as 8x3x64x64", "stele gate"),
        (["explain", "a"], "the following arguments are required: NEW.", "stele explain"),
        (
            ["gate", "a", "b", "--margin", "-5%"],
            "--margin needs a value. Write one that starts with - as --margin=VALUE.",
            "stele gate",
        ),
        ([], "the following arguments are required: COMMAND.", "stele"),
    ],
)
def test_a_usage_error_is_one_message_with_the_nearest_name_and_one_line_about_the_help(capsys, line, message, command):
    with pytest.raises(SystemExit) as end:
        entry_point.main(line)
    said, help_line = capsys.readouterr().err.splitlines()
    assert end.value.code == 2
    assert said.startswith(f"{command}: ") and message in said
    assert help_line == f"All options are listed by: {command} --help"


def test_an_unknown_shell_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as error:
        entry_point.main(["completion", "abacus"])
    assert error.value.code == 2
