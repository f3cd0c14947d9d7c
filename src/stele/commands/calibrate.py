"""``stele calibrate``: estimate which slow-downs the gate can detect on this machine."""

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy

from stele import environments, files, schema
from stele.commands import gate as gates
from stele.commands import options
from stele.commands.options import CellOptions, ProcessOptions
from stele.errors import SteleError
from stele.gate import calibration, failures, timing
from stele.gate import record as records
from stele.gate.advice import advise
from stele.gate.calibration import Sensitivity
from stele.gate.gate import Gate
from stele.gate.metrics import LONG, METRICS
from stele.gate.preparation import make
from stele.gate.record import Record
from stele.gate.state import Probe, Result, Results, to_pass
from stele.gate.trial import PARALLEL, Trial, header
from stele.measuring import machine, measure, progress
from stele.measuring.progress import say
from stele.measuring.settings import DEVICES, PRECISIONS, Settings
from stele.subjects import Cell

FOLDER = Path(".stele/calibrations")
MIN_PASSES = 5  # of a cell
MINUTES = 5.0  # the budget of the simulated gates


@dataclass(frozen=True, kw_only=True)
class CalibrateOptions:
    framework: str = "torch"
    cells: CellOptions = field(default_factory=CellOptions)
    process: ProcessOptions = field(default_factory=ProcessOptions)
    budget: float = 600.0  # seconds
    parallel: int = PARALLEL
    device: str = "cpu"
    precision: str = "fp32"
    json: Path | None = None


def add(commands: Any) -> None:
    summary = "estimate the smallest slowdown that the gate can detect on this machine"
    about = f"{summary}. Launches one release repeatedly and compares it with itself."
    command = commands.add_parser("calibrate", help=summary, description=about)
    command.add_argument("--framework", metavar="ID", help="default: %(default)s")
    command.add_argument("--task", metavar="ID[,ID...]", help="default: %(default)s")
    options.add_budget(command, CalibrateOptions.budget)
    options.add_launch_options(command)
    options.add_parallel(command)
    command.add_argument("--device", choices=DEVICES, help="default: %(default)s")
    command.add_argument("--precision", choices=PRECISIONS, help="default: %(default)s")
    command.add_argument("--json", type=Path, metavar="FILE", help="write the result to this file")
    options.declare(command, calibrate, CalibrateOptions, check=check)


def calibrate(chosen: CalibrateOptions) -> int:
    """Print what the gate can detect in each cell, and advice on the machine. Return 0."""
    trial = trial_from(chosen)
    record = records.create(FOLDER / f"{datetime.now():%Y%m%d-%H%M%S}.jsonl", header(trial))
    say(f"record: {record.path}")
    measure.announce_inputs(cell.task for cell in trial.cells)
    launches = measure_passes(Gate(trial, record))
    with progress.waiting("simulating gates"):
        estimates = {str(cell): estimate_cell(entries) for cell, entries in launches.items()}
    for cell, sensitivity in estimates.items():
        print(*calibration.messages(cell, sensitivity, minutes=MINUTES), sep="\n  ")
    conditions = [result.conditions for results in launches.values() for result in results]
    advice = list(advise(machine.facts(), conditions, trial.settings))
    print(*(advice or ["No advice: nothing about this machine needs to change."]), sep="\n")
    text = to_json(record, estimates, advice)
    files.write_text(record.path.with_suffix(".json"), text)  # stele doctor reads it
    if chosen.json is not None:
        files.write_output_text(chosen.json, text)
    return 0


def check(chosen: CalibrateOptions) -> None:
    """Raise SteleError for what cannot be done, as far as the command line says it."""
    environments.load(chosen.framework)
    chosen.cells.cells()
    gates.check_machine(settings_of(chosen))


def settings_of(chosen: CalibrateOptions) -> Settings:
    return Settings(
        device=chosen.device,
        precision=chosen.precision,
        threads=options.threads_of(chosen.process.threads),
        malloc=chosen.process.malloc,
    )


def trial_from(chosen: CalibrateOptions) -> Trial:
    environment = environments.load(chosen.framework)
    make(environment)
    settings = settings_of(chosen)
    cells = chosen.cells.cells()
    trial = Trial(
        environment,
        environment,
        cells,
        METRICS,
        settings,
        seed=0,
        budget=chosen.budget,
        parallel=chosen.parallel,
    )
    if not trial.common_cells():
        raise SteleError(f"{environment.label} has none of {', '.join(map(str, cells))}.")
    return trial


def measure_passes(gate: Gate) -> dict[Cell, list[Result]]:
    """Measure one pass of each cell in turn, MIN_PASSES times at least, until the budget is spent."""
    launches: Results = {Probe(cell, LONG): [] for cell in gate.trial.common_cells()}
    with progress.counted("budget", gate.trial.budget) as show:
        while min(map(len, launches.values())) < MIN_PASSES or not gate.is_spent:
            for probe, results in launches.items():
                timing.measure_next(gate, [probe], launches)
                if not results[-1].runs:
                    raise SteleError(f"{probe.cell}: {failures.last_message(results[-1].rounds)}")
                show(gate.record.spent)
            number = min(map(len, launches.values()))
            spent = f"{gate.record.spent / 60:.1f} of {gate.trial.budget / 60:.0f} minutes"
            gate.say(f"pass {number} of each cell; {spent}")
    return {probe.cell: results for probe, results in launches.items()}


def estimate_cell(results: list[Result]) -> Sensitivity:
    within = [
        float(numpy.std(run.counted_seconds) / numpy.mean(run.counted_seconds))
        for result in results
        for run in result.runs.values()
    ]
    seconds = float(numpy.median([result.took for result in results]))
    passes = [arms for result in results if (arms := to_pass(METRICS[0], result.runs)) is not None]
    return calibration.estimate_sensitivity(passes, within, seconds=seconds, minutes=MINUTES)


def to_json(record: Record, estimates: dict[str, Sensitivity], advice: list[str]) -> str:
    return schema.document(record.header | {"cells": estimates, "advice": advice})
