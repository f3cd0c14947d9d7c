"""``stele doctor``: what is ready, and what to do for the rest."""

import json
import re
from typing import NamedTuple

import pytest

from stele import __main__ as entry_point
from stele import environments, schema
from stele.commands import doctor
from stele.environments.state import State
from stele.measuring import machine
from stele.measuring.conditions import Conditions
from stele.measuring.speed import Speed

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
    described = {f"environment-number-{number}": Described(f"environment-number-{number}") for number in range(60)}

    def state(environment):
        number = int(environment.name.rpartition("-")[2])
        return State(statuses[number % 3], "1.2.3", reasons[number // 3 % 3])

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(environments, "described", lambda: described)
    monkeypatch.setattr(environments, "state", state)
    monkeypatch.setattr(doctor, "advise", lambda *_: ["a long piece of advice " * 20] * 5)
    monkeypatch.setattr(doctor.speed, "measure", lambda: Speed(1e-8, 2e-8))
    monkeypatch.setattr(doctor.machine.nvml, "gpus", lambda: [{"name": "A GPU with a long name"}] * 8)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    monkeypatch.setenv("COLUMNS", "80")
    calibrated(tmp_path, cells={f"{name} train": 0.02 for name in ("cnn", "gru", "encoder", "decoder", "chain")})


def calibrated(folder, *, cells, name="20260101-000000.json", **changes):
    found = {"passes": 6, "spread": 0.01, "within": 0.02, "seconds": 3.0, "alarms": 0.0}
    content = {
        "machine": {**schema.to_json(machine.facts()), **changes},
        "cells": {cell: {**found, "smallest": smallest} for cell, smallest in cells.items()},
    }
    path = folder / doctor.FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(schema.wrap(content)))


def test_doctor_says_whether_the_speed_of_the_machine_changes():
    assert doctor.describe_python(Speed(1e-8, 1.1e-8)).endswith("; its speed is steady")
    assert doctor.describe_python(Speed(1e-8, 1.8e-8)).endswith("; its speed changes: other work slows it")


def test_doctor_fits_on_a_screen_however_much_there_is(many, capsys):
    assert entry_point.main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80
    titles = {line[: doctor.INDENT].strip() for line in lines} - {""}
    assert lines[0] == "gate      ready: stele gate OLD NEW builds what it compares"
    assert titles == {
        "gate",
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
    monkeypatch.setenv("COLUMNS", "79")  # a narrow terminal shows everything, however much is ready on this machine
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


@pytest.mark.parametrize("variable", ["STELE_DATA", "STELE_ENVIRONMENTS"])
def test_doctor_shows_everything_even_if_a_variable_is_wrong(variable, monkeypatch, capsys):
    monkeypatch.setenv(variable, "/nonexistent")
    environments.described.cache_clear()
    monkeypatch.setattr(doctor.speed, "measure", lambda: Speed(1e-8, 1e-8))
    assert entry_point.main(["doctor"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"{variable}=/nonexistent is not a folder." in shown
    assert all(f"{title} " in shown for title in ("gate", "machine", "tools", "cache", "detects"))
