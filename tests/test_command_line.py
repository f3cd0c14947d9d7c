"""What a person sees at the command line: examples, completion, colours and ``stele doctor``."""

import io
import json
import re
import shlex
import subprocess
import sys
from typing import NamedTuple

import pytest

from stele import __main__ as entry_point
from stele import environments, schema
from stele.commands import doctor, examples, screen
from stele.environments.state import State
from stele.measuring import machine, speed
from stele.measuring.conditions import Conditions
from stele.measuring.speed import Speed

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


# completion

PROBE = """
source "$1"
COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2))
_shtab_stele
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """complete(*words) -> what bash offers for the last word."""
    script = tmp_path_factory.mktemp("completion") / "stele.bash"
    done = subprocess.run(
        [sys.executable, "-m", "stele", "completion", "bash"], capture_output=True, text=True, check=True
    )
    script.write_text(done.stdout)

    def complete(*words, folder=None):
        command = ["bash", "-c", PROBE, "bash", str(script), "stele", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=60)
        assert done.stderr == ""
        return done.stdout.split()

    return complete


def test_bash_completes_commands_and_options(complete):
    assert set(complete("ga")) == {"gate"}
    assert {"sync", "list", "run", "publish"} <= set(complete("releases", ""))
    assert set(complete("gate", "--mark")) == {"--markdown"}
    assert set(complete("releases", "sync", "--p")) == {"--pre"}


def test_bash_completes_files_where_a_path_is_expected(complete, tmp_path):
    (tmp_path / "report.json").touch()
    assert complete("gate", "--json", "rep", folder=tmp_path) == ["report.json"]


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells_have_a_script(shell, capsys):
    assert entry_point.main(["completion", shell]) == 0
    assert "stele" in capsys.readouterr().out


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
            "Unknown value of --device 'cuad'. Did you mean 'cuda'?",
            "stele gate",
        ),
        (["gat", "a", "b"], "Unknown command 'gat'. Did you mean 'gate'?", "stele"),
        (["fleet", "gat"], "Unknown command 'gat'. Did you mean 'gate'?", "stele fleet"),
        (
            ["gate", "a", "b", "--budget=5x"],
            "'5x' is not a duration. Write it as 90s, 20m or 1.5h.",
            "stele gate",
        ),
        (["gate", "a", "b", "--input=8x"], "'8x' is not an input such as 8x3x64x64", "stele gate"),
        (["explain", "a"], "the following arguments are required: NEW.", "stele explain"),
        ([], "the following arguments are required: COMMAND.", "stele"),
    ],
)
def test_a_usage_error_is_one_message_with_the_nearest_name_and_one_line_about_the_help(
    capsys, line, message, command
):
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


# colours


class Screen(io.StringIO):
    def isatty(self):
        return True


def printed(monkeypatch, lines, *, terminal=True, **variables):
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm", **variables}.items():
        monkeypatch.setenv(name, value)
    output = Screen() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stdout", output)
    screen.print_lines(lines)
    return output.getvalue()


def test_a_status_has_a_colour_in_a_terminal(monkeypatch):
    shown = printed(monkeypatch, ["PASS  gru train", "REGRESSED  step", "INCONCLUSIVE: a to b"])
    assert "\x1b[1;32mPASS\x1b[0m  gru train\n" in shown
    assert "\x1b[1;31mREGRESSED\x1b[0m" in shown and "\x1b[1;33mINCONCLUSIVE\x1b[0m: a to b" in shown


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"terminal": False}], ids=str)
def test_colours_can_be_switched_off_and_are_only_for_terminals(monkeypatch, variables):
    shown = printed(monkeypatch, ["REGRESSED  gru"], **variables)
    codes = {code for codes in re.findall(r"\x1b\[([\d;]*)m", shown) for code in codes.split(";")}
    assert codes <= {"0", "1"}  # bold is no colour
    assert re.sub(r"\x1b\[[\d;]*m", "", shown) == "REGRESSED  gru\n"


def test_names_are_shown_as_they_are(monkeypatch):
    line = "PASS  [red]markup[/red] https://example.org 12 'text'" + " x" * 200
    shown = printed(monkeypatch, [line])
    assert re.sub(r"\x1b\[[\d;]*m", "", shown) == line + "\n"
    assert len(re.findall(r"\x1b\[1", shown)) == 1  # nothing else has a colour


def test_a_part_of_a_word_has_no_colour(monkeypatch):
    assert "\x1b" not in printed(monkeypatch, ["BYPASS already good-natured"])


# doctor


class Described(NamedTuple):
    name: str
    base: None = None
    needs_gpu: bool = False


@pytest.fixture
def many(monkeypatch, tmp_path):
    """A machine with everything that makes the screen longer."""
    statuses = ["ready", "missing", "broken"]
    reasons = ["not built. Build it", "Run: pip install", "no interpreter"]
    described = {
        f"environment-number-{number}": Described(f"environment-number-{number}") for number in range(60)
    }

    def state(environment):
        number = int(environment.name.rpartition("-")[2])
        return State(statuses[number % 3], "1.2.3", reasons[number // 3 % 3])

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(environments, "described", lambda: described)
    monkeypatch.setattr(environments, "state", state)
    monkeypatch.setattr(doctor, "advise", lambda *_: ["a long piece of advice " * 20] * 5)
    monkeypatch.setattr(doctor.speed, "measure", lambda: Speed(1e-8, 2e-8))
    monkeypatch.setattr(doctor.machine, "gpus", lambda: [{"name": "A GPU with a long name"}] * 8)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    monkeypatch.setenv("COLUMNS", "80")
    calibrated(
        tmp_path, cells={f"{name} train": 0.02 for name in ("cnn", "gru", "encoder", "decoder", "chain")}
    )


def calibrated(folder, *, cells, name="20260101-000000.json", **changes):
    found = {"passes": 6, "spread": 0.01, "within": 0.02, "seconds": 3.0, "alarms": 0.0}
    content = {
        "machine": {**machine.facts(), **changes},
        "cells": {cell: {**found, "smallest": smallest} for cell, smallest in cells.items()},
    }
    path = folder / doctor.FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(schema.wrap(content)))


def test_doctor_says_whether_the_speed_of_the_machine_changes():
    assert doctor.describe_python(Speed(1e-8, 1.1e-8)).endswith("; an empty loop takes 10 to 11 ns")
    assert doctor.describe_python(Speed(1e-8, 1.8e-8)).endswith(": other work slows it")
    found = speed.measure(0.01)
    assert 0 < found.fast <= found.slow


def test_doctor_fits_on_a_screen_however_much_there_is(many, capsys):
    assert entry_point.main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80
    titles = {line[: doctor.INDENT].strip() for line in lines} - {""}
    assert titles == {
        "machine",
        "python",
        "ready",
        "missing",
        "broken",
        "tools",
        "data",
        "cache",
        "detects",
        "advice",
    }


def test_doctor_shows_everything_on_a_narrow_terminal(many, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    entry_point.main(["doctor"])
    shown = capsys.readouterr().out
    assert "…" not in shown and max(map(len, shown.splitlines())) <= 40


def test_doctor_shows_what_is_ready_and_how_to_get_the_rest(add_environment, capsys, monkeypatch):
    add_environment("abacus")
    monkeypatch.setenv(
        "COLUMNS", "79"
    )  # a narrow terminal shows everything, however much is ready on this machine
    assert entry_point.main(["doctor"]) == 0
    shown = capsys.readouterr().out
    [ready] = re.findall(r"^ready +(.*?)^missing ", shown, re.M | re.S)
    assert "abacus" in ready
    assert "stele env make NAME" in shown
    assert "unknown. Measure it on the idle machine with: stele calibrate" in shown


def test_doctor_shows_what_was_calibrated_on_this_machine(add_environment, tmp_path, capsys):
    add_environment("abacus")
    calibrated(tmp_path, cells={"gru train": 0.02, "cnn train": None})
    calibrated(tmp_path, cells={"gru infer": 0.5}, name="20260102-000000.json", processor="another one")
    (tmp_path / doctor.FOLDER / "20260103-000000.json").write_text('{"schema": 1, "machine"')
    (tmp_path / doctor.FOLDER / "20260104-000000.json").write_text('{"schema": 9}')
    entry_point.main(["doctor"])
    shown = capsys.readouterr().out
    assert "a slow-down of 2.0% of gru train in 5 minutes" in shown
    assert "no slow-down of cnn train" in shown
    assert "gru infer" not in shown


def test_doctor_says_that_other_processes_use_the_machine(monkeypatch):
    busy = Conditions(2.0, 0.0, 0.42, None)
    monkeypatch.setattr(doctor.Monitor, "conditions", lambda self: busy)
    [advice] = [text for title, text, _ in doctor.examine(machine.facts()) if title == "advice"]
    assert advice.startswith("Other processes used 42% of the processors.")
