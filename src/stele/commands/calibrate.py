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
from stele.gate import calibration, failures, record, timing, trial
from stele.gate.advice import advise
from stele.gate.calibration import Sensitivity
from stele.gate.metrics import LONG, METRICS
from stele.gate.record import Record
from stele.gate.state import Probe, Result, to_pass
from stele.gate.trial import Cell, Trial
from stele.measuring import machine, progress
from stele.measuring.settings import DEVICES, PRECISIONS, Settings

FOLDER = Path(".stele/calibrations")
MIN_PASSES = 5  # of a cell
MINUTES = 5.0  # the budget of the simulated gates


def add(commands: Any) -> None:
    summary = "estimate which slow-downs the gate can detect on this machine"
    about = f"{summary}. Launches one release repeatedly and compares it with itself."
    command = commands.add_parser("calibrate", help=summary, description=about)
    command.add_argument("--framework", metavar="ID", default="torch", help="default: %(default)s")
    command.add_argument("--task", metavar="ID[,ID...]", default="cnn,gru", help="default: %(default)s")
    options.add_budget(command, "10m")
    options.add_launch_options(command)
    options.add_at_once(command)
    command.add_argument("--device", choices=DEVICES, default="cpu", help="default: %(default)s")
    command.add_argument("--precision", choices=PRECISIONS, default="fp32", help="default: %(default)s")
    command.add_argument("--json", type=Path, metavar="FILE", help="write the result to this file")
    command.set_defaults(command=calibrate)


def calibrate(arguments: argparse.Namespace) -> int:
    """Print what the gate can detect in each cell, and advice on the machine. Return 0."""
    subject = trial_from(arguments)
    log = record.create(FOLDER / f"{datetime.now():%Y%m%d-%H%M%S}.jsonl", trial.header(subject))
    say(f"record: {log.path}")
    options.announce_inputs(cell.task for cell in subject.cells)
    launches = measure_passes(subject, log)
    with progress.waiting("simulating gates"):
        estimates = {str(cell): estimate_cell(entries) for cell, entries in launches.items()}
    for cell, sensitivity in estimates.items():
        print(*calibration.messages(cell, sensitivity, minutes=MINUTES), sep="\n  ")
    conditions = [result.conditions for results in launches.values() for result in results]
    advice = list(advise(machine.facts(), conditions, subject.settings))
    print(*(advice or ["No advice: nothing about this machine needs to change."]), sep="\n")
    text = to_json(log, estimates, advice)
    files.write_text(log.path.with_suffix(".json"), text)  # stele doctor reads it
    if arguments.json is not None:
        files.write_output_text(arguments.json, text)
    return 0


def trial_from(arguments: argparse.Namespace) -> Trial:
    environment = environments.load(arguments.framework)
    make(environment)
    where = {"device": arguments.device, "precision": arguments.precision}
    settings = Settings(**where, threads=options.threads_from(arguments), malloc=arguments.malloc)
    cells = options.parse_cells(arguments.task, None)
    subject = Trial(
        environment,
        environment,
        cells,
        METRICS,
        settings,
        seed=0,
        budget=arguments.budget,
        at_once=arguments.at_once,
    )
    if not subject.common_cells():
        raise SteleError(f"{environment.label} has none of {', '.join(map(str, cells))}.")
    return subject


def measure_passes(subject: Trial, log: Record) -> dict[Cell, list[Result]]:
    """Measure one pass of each cell in turn, MIN_PASSES times at least, until the budget is spent."""
    launches: dict[Cell, list[Result]] = {cell: [] for cell in subject.common_cells()}
    with progress.counted("budget", subject.budget) as show:
        while min(map(len, launches.values())) < MIN_PASSES or not subject.budget_spent(log):
            for cell, results in launches.items():
                results += timing.measure_next(subject, log, Probe(cell, LONG), results)
                if not results[-1].runs:
                    raise SteleError(f"{cell}: {failures.last_message(results[-1].rounds)}")
                show(log.spent)
            number = min(map(len, launches.values()))
            say(f"pass {number} of each cell; {log.spent / 60:.1f} of {subject.budget / 60:.0f} minutes")
    return launches


def estimate_cell(results: list[Result]) -> Sensitivity:
    within = [
        float(numpy.std(run.counted_seconds) / numpy.mean(run.counted_seconds))
        for result in results
        for run in result.runs.values()
    ]
    seconds = float(numpy.median([result.took for result in results]))
    passes = [arms for result in results if (arms := to_pass(METRICS[0], result.runs)) is not None]
    return calibration.estimate_sensitivity(passes, within, seconds=seconds, minutes=MINUTES)


def to_json(log: Record, estimates: dict[str, Sensitivity], advice: list[str]) -> str:
    content = schema.wrap(log.header) | {
        "cells": {cell: sensitivity._asdict() for cell, sensitivity in estimates.items()},
        "advice": advice,
    }
    return json.dumps(content, indent=1) + "\n"
