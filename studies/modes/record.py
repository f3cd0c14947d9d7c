"""Launch the modes of a framework together, and store each pass in .stele/modes/<environment>-<task>-<phase>.jsonl."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from stele import environments, files, schema
from stele.environments import Environment
from stele.measuring import measure as measuring
from stele.measuring import processors
from stele.measuring.run import Options, Run
from stele.measuring.settings import Settings
from stele_suite.tasks import NAMES
from studies import launches
from studies.ready import environments_with

FOLDERS = {"cpu": Path(".stele/modes"), "cuda": Path(".stele/modes-cuda")}
OPERATORS = Path(".stele/operators.jsonl")  # of studies/operators.py
device = "cpu"
PHASES = ("train", "infer")
# another interpreter, whose only mode is compared with those of this one
BESIDE = {"chainer-ideep": "chainer"}
SCALE, STEPS = "gate", 32
TIMEOUT = 300.0  # seconds of silence, after which a mode counts as failed; a compilation may take long


class Cell(NamedTuple):
    """A task in a phase, in all modes of a framework. ``base`` is the name of the environment in its first mode."""

    base: str
    task: str
    phase: str

    @property
    def path(self) -> Path:
        return FOLDERS[device] / f"{self.base}-{self.task}-{self.phase}.jsonl"


class Pass(NamedTuple):
    """The Runs of the modes that were launched together, and the messages of those that failed, by environment."""

    runs: dict[str, Run]
    failed: dict[str, str]


def cells(names: Sequence[str] | None, tasks: Sequence[str] | None, phases: Sequence[str] | None) -> list[Cell]:
    """Return the selected cells in which two modes or more are ready."""
    return [
        cell
        for task in tasks or NAMES
        for phase in phases or PHASES
        for cell in (Cell(name, task, phase) for name in names or environments.first_modes())
        if len(modes(cell, settings())) > 1
    ]


def settings() -> Settings:
    return Settings(device=device, threads=processors.count())


def modes(cell: Cell, settings: Settings) -> list[Environment]:
    """Return the environments of a framework that are ready and have the cell."""
    ready = environments_with(cell.task, cell.phase, settings)
    return [
        environment
        for environment in ready
        if cell.base in (environment.name, environment.base, BESIDE.get(environment.name))
    ]


def measure_pass(cell: Cell, seed: int) -> Pass:
    """Launch all modes together, in random order. Those that fail are left out, and the others launched again."""
    of_all = settings()
    fields, _ = measuring.inputs(cell.task)
    plan = measuring.Plan(task=cell.task, phase=cell.phase, scale=SCALE, options=Options(steps=STEPS), **fields)
    environments_of_cell, failed = modes(cell, of_all), dict[str, str]()
    random.Random(seed).shuffle(environments_of_cell)
    sides = {environment.name: environment for environment in environments_of_cell}
    while sides:
        try:
            return Pass(measuring.side_by_side(sides, plan, of_all, timeout=TIMEOUT), failed)
        except measuring.SideFailed as error:
            failed[error.side] = error.headline
            del sides[error.side]
    return Pass({}, failed)


def measure(cells: Sequence[Cell], passes: int) -> None:
    """Measure each cell until it has so many passes; one of each at a time. Each pass is stored before the next."""
    FOLDERS[device].mkdir(parents=True, exist_ok=True)
    for number in range(passes):
        for cell in [cell for cell in cells if len(load(cell)) <= number]:
            result = measure_pass(cell, seed=number)
            runs = schema.to_json(result.runs)
            files.append_text(cell.path, json.dumps({"runs": runs, "failed": result.failed}) + "\n")
            print(f"pass {number + 1} of {passes}: {cell.base} {cell.task} {cell.phase}", flush=True)


def load(cell: Cell) -> list[Pass]:
    """Return the stored passes of a cell."""
    if not cell.path.exists():
        return []
    lines = cell.path.read_text(encoding="utf-8").splitlines()
    return [parse(json.loads(line)) for line in lines]


def parse(line: dict[str, Any]) -> Pass:
    return Pass(schema.convert(line["runs"], dict[str, Run]), line["failed"])


def load_all() -> dict[Cell, list[Pass]]:
    """Return the passes of every cell that is stored."""
    every = [Cell(name, task, phase) for task in NAMES for phase in PHASES for name in environments.first_modes()]
    return {cell: load(cell) for cell in every if cell.path.exists()}


def overheads() -> dict[str, str]:
    """Return the microseconds of an operation by environment, if studies/operators.py has measured them."""
    stored = launches.load(OPERATORS, "environment", "result") if device == "cpu" else {}
    return {name: result["row"][2] for name, (result, *_) in stored.items()}
