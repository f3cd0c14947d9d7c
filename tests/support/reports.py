"""Folders of measurements, and the reports of them."""

from pathlib import Path

import pytest

from stele import __main__ as entry_point
from stele.report import build, sources
from tests.support import gate_records
from tests.support.runs import to_training

ROOT = Path(__file__).parents[2]
REGRESSED = gate_records.verdict(status="REGRESSED", message="30.0 % slower in 8 passes", ratio=(1.25, 1.3, 1.36))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def report(*paths):
    return build.report(sources.read([Path(path) for path in paths]))


def section(whole, anchor):
    return next(one for one in whole.sections if one.anchor == anchor)


EXPLANATION = {
    "schema": 1,
    "old": "torch==2.12.0",
    "new": "torch==2.13.0",
    "cells": {
        "cnn train": {
            "old": 0.010, "new": 0.014, "profiled_old": 0.011, "profiled_new": 0.016,
            "operations": [
                {"name": "aten::mul", "old": 0.001, "new": 0.005, "old_calls": 2.0, "new_calls": 7.0},
                {"name": "gone", "old": 0.0005, "new": 0.0, "old_calls": 1.0, "new_calls": 0.0},
            ],
        },
    },
    "differs": ["flags: threads: 1 → 2"],
}  # fmt: skip


# bad input


def stele(*arguments):
    return entry_point.main(["report", *map(str, arguments)])


NAME = "n" * 10_000
PARITY = gate_records.verdict("m.py:model", "all", "parity", ratio=None, message="equal to OLD")


def parity_alone(path, *verdicts, took=12.0, **facts):
    """Return the report of a gate of ``--metric parity``."""
    top = gate_records.header(cells=(("m.py:model", "train"),), **facts)
    lines = [
        {"key": ["parity", "m.py:model", arm], "took": took, "failure": None,
         "findings": [{"rung": 3, "status": "agrees", "message": "", "error": 0.0, "limit": 1e-5, "where": None}]}
        for arm in ("old", "new")
    ]  # fmt: skip
    gate_records.write(path, top, [*lines, gate_records.last(verdicts or [PARITY])])
    return build.report(sources.read([path]))


def training(run, environment, seed, accuracy, **epochs):
    """Return a training of two epochs of 2 s, whose evaluations took 1 s."""
    return to_training(
        run,
        task="cifar-fast",
        scale="cpu",
        environment=environment,
        settings={"seed": seed},
        when=f"2026-01-02T03:04:0{seed}.000+00:00",
        learning={"accuracy": accuracy},
        epochs={
            "accuracies": (0.3, accuracy),
            "evaluation_seconds": (0.5, 0.5),
            "compile_seconds": 5.0,
            "elapsed": 10.5,
            **epochs,
        },
    )
