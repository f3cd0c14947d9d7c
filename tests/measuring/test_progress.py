import io
import sys

import pytest
from msgspec.structs import replace

from stele.measuring import progress
from stele.measuring.answers import Progress

REPORT = Progress(phase="train", done=3, of=150)


class Screen(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def watch(monkeypatch):
    """watch() -> a terminal that receives standard error from now on; pytest replaces it before each test."""

    def watch(columns=100):
        screen = Screen()
        monkeypatch.setattr(sys, "stderr", screen)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", str(columns))
        return screen

    return watch


def test_a_terminal_shows_a_bar(watch):
    screen = watch()
    with progress.bar("torch cnn, seed 0") as show:
        show(REPORT)
    assert "torch cnn, seed 0: train" in screen.getvalue()
    assert "2%" in screen.getvalue()


def test_the_bar_of_a_training_shows_its_last_loss_accuracy_and_remaining_time():
    report = replace(REPORT, loss=1.2345, accuracy=0.567, remaining=90.0)
    assert progress.details(report) == ", loss 1.234, accuracy 56.7%, 1.5 min left"
    assert progress.details(replace(report, loss=None, accuracy=None)) == ", 1.5 min left"
    assert progress.details(REPORT) == ""


def test_without_a_terminal_nothing_is_written(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress.bar("torch cnn, seed 0") as show, progress.waiting("building"):
        show(REPORT)
    with progress.counted("budget", 10) as show:
        show(3)
    assert screen.getvalue() == ""


def test_without_a_terminal_a_training_writes_a_line_for_each_epoch(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress.bar("torch cnn, seed 0") as show:
        show(replace(REPORT, done=2, of=4, loss=1.2345, accuracy=0.567, remaining=90.0))
    assert screen.getvalue() == "torch cnn, seed 0: 2 of 4, loss 1.234, accuracy 56.7%, 1.5 min left\n"


def test_what_has_no_known_end_shows_how_long_it_takes(watch):
    screen = watch()
    with progress.waiting("building torch [bold]"):
        pass
    assert "building torch [bold]" in screen.getvalue()
    assert "0:00:00" in screen.getvalue()


def test_a_count_shows_the_share_and_the_time_left(watch):
    screen = watch()
    with progress.counted("budget", 10) as show:
        show(5)
        show(20)  # the last launch may exceed the budget
    assert "50%" in screen.getvalue() and "100%" in screen.getvalue()
    assert "left:" in screen.getvalue()


def test_nothing_is_drawn_while_something_is_timed(watch, monkeypatch):
    watch()
    import rich.progress

    made = []
    original = rich.progress.Progress
    monkeypatch.setattr(
        rich.progress,
        "Progress",
        lambda *columns, **options: made.append(options) or original(*columns, **options),
    )
    with progress.counted("budget", 10), progress.waiting("building"):  # the inner one must not draw, either
        pass
    assert [options["auto_refresh"] for options in made] == [False]


def test_a_display_can_follow_one_that_failed(watch):
    screen = watch()
    with pytest.raises(ValueError), progress.waiting("first"):
        raise ValueError
    with progress.waiting("second"):
        pass
    assert "second" in screen.getvalue()


@pytest.mark.parametrize("columns", [20, 40])
def test_a_narrow_terminal_is_enough(watch, columns):
    screen = watch(columns)
    with progress.counted("a title that is longer than the line of a narrow terminal", 10) as show:
        show(5)
    assert screen.getvalue()


def test_in_a_terminal_the_next_line_of_a_part_that_runs_replaces_the_last_one(watch):
    screen = watch(columns=31)
    progress.say("stele gate")
    for text in ("OLD: about 8 s", "NEW: about 14 seconds"):
        progress.part("parity", text, runs=True)
    progress.part("parity", "equal to OLD")
    progress.part("accuracy", "seed 0", runs=True)
    progress.say("a warning")
    progress.part("accuracy", "seed 1")
    first, second = "  parity         OLD: about 8 s\n", "  parity         NEW: about 14\n                 seconds\n"
    assert screen.getvalue() == (
        f"stele gate\n{first}\x1b[1F\x1b[J{second}\x1b[2F\x1b[J  parity         equal to OLD\n"
        "  accuracy       seed 0\na warning\n  accuracy       seed 1\n"
    )


def test_without_a_terminal_each_line_of_a_part_stays(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    for text in ("OLD", "NEW"):
        progress.part("parity", text, runs=True)
    assert screen.getvalue() == "  parity         OLD\n  parity         NEW\n"
