"""An environment that returns scripted trainings with the tricks of a task."""

import pytest

from stele import __main__ as entry_point
from stele.commands import tricks as command
from stele.measuring import measure
from stele.measuring.run import Origin
from stele.report import page
from stele_suite import tasks

REAL = {"data": None, "data_origin": Origin(origin="official", fingerprint="0")}
TRICKS = {"baseline": 24, "device-augmentation": 24, "label-smoothing": 23, "celu": 20, "ema": 20}


@pytest.fixture
def tricks(add_environment, monkeypatch):
    """tricks(*options, ...) -> exit status of the command for an environment whose accuracy grows with each trick."""
    monkeypatch.setattr(measure, "inputs", lambda task: (REAL, None))
    monkeypatch.setattr(tasks.load("cnn"), "TRICKS", {"quick": TRICKS}, raising=False)
    monkeypatch.setattr(tasks.load("cnn"), "WITHOUT", {"scripted": {"celu": "it has no CELU"}}, raising=False)

    def tricks(*options, scale="quick"):
        add_environment("fake", accuracies=[0.59, 0.60, 0.61], gain=0.01)
        named = ["--framework=fake", "--task=cnn", f"--scale={scale}", "--seeds=3", "--device=cpu"]
        return entry_point.main(["tricks", *named, "--target=60%", "--no-wait", *options])

    return tricks


def part(content=""):
    """Return the part of a page that the command fills."""
    return f"{page.BEGIN.replace(page.BY, command.PART)}\n{content}\n{page.END}\n"
