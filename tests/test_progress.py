import io
import sys

from stele.measuring import progress

REPORT = {"phase": "train", "done": 3, "of": 150}


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_a_bar(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with progress.bar("torch cnn, seed 0") as show:
        show(REPORT)
    assert "torch cnn, seed 0: train" in screen.getvalue()
    assert "2%" in screen.getvalue()


def test_the_bar_of_a_training_shows_its_last_loss_accuracy_and_remaining_time():
    report = {**REPORT, "loss": 1.2345, "accuracy": 0.567, "remaining": 90.0}
    assert progress.details(report) == ", loss 1.234, accuracy 56.7%, 1.5 min left"
    assert progress.details({**report, "loss": None, "accuracy": "high"}) == ", 1.5 min left"
    assert progress.details(REPORT) == ""


def test_without_a_terminal_nothing_is_written(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress.bar("torch cnn, seed 0") as show:
        show(REPORT)
    assert screen.getvalue() == ""
