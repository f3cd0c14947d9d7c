"""``stele calibrate``: what this machine can see."""

import argparse
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy

from stele import environments, files, schema
from stele.commands import options
from stele.commands.gate import make
from stele.commands.options import say
from stele.errors import SteleError
from stele.gate import calibration, metrics, record, trial
from stele.gate.advice import advice
from stele.gate.calibration import Sight
from stele.gate.conditions import Conditions
from stele.gate.record import Record
from stele.gate.timing import STEP
from stele.gate.trial import Cell, Trial
from stele.measuring import machine
from stele.measuring.run import Run
from stele.measuring.settings import DEVICES, PRECISIONS, Settings

FOLDER = Path(".stele/calibrations")
FEWEST = 6  # pairs of a cell
ARMS = ("old", "control")
MINUTES = 5.0  # in which a slow-down is to be found


def add(commands: Any) -> None:
    about = "what can this machine see? Launches one release again and again, and says"
    command = commands.add_parser("calibrate", help="what can this machine see?", description=about)
    command.add_argument("--framework", metavar="ID", default="torch", help="default: %(default)s")
    command.add_argument("--task", metavar="ID,…", default="cnn,gru", help="default: %(default)s")
    options.steady(command, budget="10m")
    command.add_argument("--device", choices=DEVICES, default="cpu", help="default: %(default)s")
    command.add_argument("--precision", choices=PRECISIONS, default="fp32", help="default: %(default)s")
    command.add_argument("--json", type=Path, metavar="FILE")
    command.set_defaults(command=calibrate)


def calibrate(arguments: argparse.Namespace) -> int:
    """Print a few messages. Returns 0."""
    subject = asked(arguments)
    kept = record.new(FOLDER / f"{datetime.now():%Y%m%d-%H%M%S}.jsonl", trial.header(subject))
    say(f"the record: {kept.path}")
    launches = measured(subject, kept)
    found = {str(cell): seen(entries) for cell, entries in launches.items()}
    for cell, one in found.items():
        print(*calibration.messages(cell, one, minutes=MINUTES), sep="\n  ")
    conditions = [Conditions(**entry["conditions"]) for entries in launches.values() for entry in entries]
    told = list(advice(machine.facts(), conditions, subject.settings))
    print(*(told or ["Nothing about this machine asks to be changed."]), sep="\n")
    if arguments.json:
        write(arguments.json, kept, found, told)
    return 0


def asked(arguments: argparse.Namespace) -> Trial:
    row = environments.load(arguments.framework)
    make(row)
    where = {"device": arguments.device, "precision": arguments.precision}
    settings = Settings(**where, threads=arguments.threads, malloc=arguments.malloc)
    cells = options.cells(arguments.task, None)
    subject = Trial(row, row, cells, metrics.METRICS, settings, seed=0, budget=arguments.budget)
    if not subject.present():
        raise SteleError(f"{row.label} has none of {', '.join(map(str, cells))}.")
    return subject


def measured(subject: Trial, kept: Record) -> dict[Cell, list[record.Entry]]:
    """Passes over all cells, as many as the budget has room for."""
    found: dict[Cell, list[record.Entry]] = {cell: [] for cell in subject.present()}
    number = 0
    while number < FEWEST or not subject.over(kept):
        for cell, entries in found.items():

            def launch(cell: Cell = cell) -> record.Entry:
                return trial.launched(subject, cell, ARMS, subject.settings, subject.scale)

            entry = kept.once("pair", str(cell), number, launch=launch)
            for said in trial.failed(entry).values():
                raise SteleError(f"{cell}: {said}")
            entries.append(entry)
        number += 1
        say(f"pair {number} of each; {kept.spent / 60:.1f} of {subject.budget / 60:.0f} minutes")
    return found


def seen(entries: list[record.Entry]) -> Sight:
    pairs = [[Run.from_dict(entry["runs"][arm]) for arm in ARMS] for entry in entries]
    within = [float(numpy.std(run.counted) / numpy.mean(run.counted)) for pair in pairs for run in pair]
    took = float(numpy.median([entry["took"] for entry in entries]))
    found = [STEP.difference(*pair) for pair in pairs]
    return calibration.sight([one for one in found if one is not None], within, seconds=took, minutes=MINUTES)


def write(path: Path, kept: Record, found: dict[str, Sight], told: list[str]) -> None:
    facts = schema.stamped(kept.header) | {
        "cells": {cell: one._asdict() for cell, one in found.items()},
        "advice": told,
    }
    files.write_text(path, json.dumps(facts, indent=1) + "\n")
