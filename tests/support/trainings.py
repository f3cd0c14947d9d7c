"""Environments that return scripted trainings."""

import json
import re
from pathlib import Path

import pytest

from stele import __main__ as entry_point
from stele.measuring import measure
from stele.measuring.run import Origin

REAL = {"data": None, "data_origin": Origin(origin="official", fingerprint="0")}
SYNTHETIC = {"data": None, "data_origin": Origin(origin="synthetic", fingerprint="1")}
FOLDER = Path(".stele/time-to-accuracy")


@pytest.fixture
def measure_seeds(add_environment, monkeypatch):
    """measure_seeds(*options, accuracies=[of each seed], ...) -> exit status of the command for one environment."""
    monkeypatch.setattr(measure, "inputs", lambda task: (REAL, None))

    def measure_seeds(*options, scale="quick", target="60%", count=4, **script):
        add_environment("fake", **{"accuracies": [0.61, 0.62, 0.63, 0.64], **script})
        named = ["--framework=fake", "--task=cnn", f"--scale={scale}", f"--seeds={count}", "--device=cpu"]
        return entry_point.main(["time-to-accuracy", *named, f"--target={target}", "--no-wait", *options])

    return measure_seeds


def results(measure_seeds, *options, **script):
    """Return the results of the JSON file, and the exit status."""
    status = measure_seeds("--json=out.json", *options, **script)
    [result] = json.loads(Path("out.json").read_text())["results"]
    return result, status


def printed(capsys):
    return re.sub("  +", "  ", capsys.readouterr().out)
