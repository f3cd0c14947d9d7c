"""``stele calibrate``: estimate which slow-downs the gate can detect on this machine."""

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
from stele.gate.advice import advise
from stele.gate.calibration import Sensitivity
from stele.gate.conditions import Conditions
from stele.gate.record import Record
from stele.gate.timing import STEP
from stele.gate.trial import Cell, Trial
from stele.measuring import machine
from stele.measuring.run import Run
from stele.measuring.settings import DEVICES, PRECISIONS, Settings

FOLDER = Path(".stele/calibrations")
MIN_PAIRS = 6  # of a cell
ARMS = ("old", "control")
MINUTES = 5.0  # the budget of the simulated gates


def add(commands: Any) -> None:
    summary = "estimate which slow-downs the gate can detect on this machine"
    about = f"{summary}. Launches one release repeatedly and compares it with itself."
    command = commands.add_parser("calibrate", help=summary, description=about)
    command.add_argument("--framework", metavar="ID", default="torch", help="default: %(default)s")
    command.add_argument("--task", metavar="ID[,ID...]", default="cnn,gru", help="default: %(default)s")
    options.add_launch_options(command, budget="10m")
    command.add_argument("--device", choices=DEVICES, default="cpu", help="default: %(default)s")
    command.add_argument("--precision", choices=PRECISIONS, default="fp32", help="default: %(default)s")
    command.add_argument("--json", type=Path, metavar="FILE", help="write the result to this file")
    command.set_defaults(command=calibrate)


def calibrate(arguments: argparse.Namespace) -> int:
    """Print what the gate can detect in each cell, and advice on the machine. Return 0."""
    subject = trial_from(arguments)
    log = record.create(FOLDER / f"{datetime.now():%Y%m%d-%H%M%S}.jsonl", trial.header(subject))
    say(f"record: {log.path}")
    launches = measure_pairs(subject, log)
    estimates = {str(cell): estimate_cell(entries) for cell, entries in launches.items()}
    for cell, sensitivity in estimates.items():
        print(*calibration.messages(cell, sensitivity, minutes=MINUTES), sep="\n  ")
    conditions = [Conditions(**entry["conditions"]) for entries in launches.values() for entry in entries]
    advice = list(advise(machine.facts(), conditions, subject.settings))
    print(*(advice or ["No advice: nothing about this machine needs to change."]), sep="\n")
    if arguments.json:
        write(arguments.json, log, estimates, advice)
    return 0


def trial_from(arguments: argparse.Namespace) -> Trial:
    environment = environments.load(arguments.framework)
    make(environment)
    where = {"device": arguments.device, "precision": arguments.precision}
    settings = Settings(**where, threads=arguments.threads, malloc=arguments.malloc)
    cells = options.parse_cells(arguments.task, None)
    subject = Trial(
        environment, environment, cells, metrics.METRICS, settings, seed=0, budget=arguments.budget
    )
    if not subject.common_cells():
        raise SteleError(f"{environment.label} has none of {', '.join(map(str, cells))}.")
    return subject


def measure_pairs(subject: Trial, log: Record) -> dict[Cell, list[record.Entry]]:
    """Measure one pair of each cell in turn, MIN_PAIRS times at least, until the budget is spent."""
    launches: dict[Cell, list[record.Entry]] = {cell: [] for cell in subject.common_cells()}
    number = 0
    while number < MIN_PAIRS or not subject.budget_spent(log):
        for cell, entries in launches.items():

            def launch(cell: Cell = cell) -> record.Entry:
                return trial.launch_arms(subject, cell, ARMS, subject.settings, subject.scale)

            entry = log.get_or_launch("pair", str(cell), number, launch=launch)
            for message in trial.failure_messages(entry).values():
                raise SteleError(f"{cell}: {message}")
            entries.append(entry)
        number += 1
        say(f"pair {number} of each cell; {log.spent / 60:.1f} of {subject.budget / 60:.0f} minutes")
    return launches


def estimate_cell(entries: list[record.Entry]) -> Sensitivity:
    pairs = [[Run.from_dict(entry["runs"][arm]) for arm in ARMS] for entry in entries]
    within = [
        float(numpy.std(run.counted_seconds) / numpy.mean(run.counted_seconds))
        for pair in pairs
        for run in pair
    ]
    seconds = float(numpy.median([entry["took"] for entry in entries]))
    differences = [difference for pair in pairs if (difference := STEP.difference(*pair)) is not None]
    return calibration.estimate_sensitivity(differences, within, seconds=seconds, minutes=MINUTES)


def write(path: Path, log: Record, estimates: dict[str, Sensitivity], advice: list[str]) -> None:
    content = schema.wrap(log.header) | {
        "cells": {cell: sensitivity._asdict() for cell, sensitivity in estimates.items()},
        "advice": advice,
    }
    files.write_text(path, json.dumps(content, indent=1) + "\n")
