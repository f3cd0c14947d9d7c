"""A report in a terminal."""

import subprocess
import sys

import pytest

from stele.report import terminal
from tests.support import gate_records
from tests.support.reports import REGRESSED, report, stele

# the terminal


def test_lines_fit_a_terminal_of_forty_columns(folder, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    assert stele(gate_records.gate(folder / "a.jsonl", verdicts=[REGRESSED])) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines and max(map(len, lines)) <= 40


def test_a_wide_terminal_shows_a_table(folder):
    whole = report(gate_records.gate(folder / "a.jsonl", verdicts=[REGRESSED]))
    assert "verdict    cell       metric  NEW / OLD  in words" in list(terminal.lines(whole, 200))


def run_stele(*arguments, **options):
    command = [sys.executable, "-m", "stele", "report", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, timeout=60, **options)


@pytest.mark.slow
def test_a_terminal_without_unicode_and_colour_shows_the_report(folder, monkeypatch):
    for name, value in {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "NO_COLOR": "1",
    }.items():
        monkeypatch.setenv(name, value)
    done = run_stele(gate_records.gate(folder / "a.jsonl", verdicts=[REGRESSED]))
    assert done.returncode == 0 and b"torch 2.12.0 ? 2.13.0" in done.stdout
    assert b"\x1b" not in done.stdout and done.stdout.isascii()
