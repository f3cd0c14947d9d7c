"""Colours in a terminal."""

import io
import re
import sys

import pytest

from stele.commands import screen

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
