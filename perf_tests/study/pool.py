"""Launches of one release, recorded once: four cells, in the quiet and beside a busy foreign process."""

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from stele import environments
from stele.environments import builds
from stele.gate import record, trial
from stele.gate.metrics import METRICS
from stele.gate.trial import Cell, Trial
from stele.run import Run
from stele.settings import Settings

FOLDER = Path(".stele/study")
CONDITIONS = ("quiet", "busy")
# launches that take a second or three, so that a thousand of them are done in half an hour
CELLS = (("onnxruntime", "gru"), ("onnxruntime", "cnn"), ("openvino", "gru"), ("torch", "gru"))
SCALE = "study"
BUSY = "while True: pass"


class Launch(NamedTuple):
    """Its counted steps, and what else is judged, in seconds and bytes."""

    steps: tuple[float, ...]
    values: dict[str, float]
    took: float


Pool = dict[str, list[Launch]]  # by cell, in the order of time


def recorded(condition: str, count: int, *, only_read: bool) -> Pool:
    """Passes over the cells, until each has so many launches. Goes on where an earlier study stopped."""
    path = FOLDER / f"{condition}.jsonl"
    cells = {f"{name} {task}": subject(name, task) for name, task in CELLS}
    kept = (
        record.resume(path) if path.exists() else record.new(path, trial.header(next(iter(cells.values()))))
    )
    trial.refuse_another(kept, next(iter(cells.values())))
    found: Pool = {cell: [] for cell in cells}
    with neighbour(condition, needed=not only_read and kept.launches < count * len(cells)):
        for number in range(count):
            for cell, one in cells.items():
                if only_read and kept.get(cell, number) is None:
                    continue
                found[cell].append(launch(kept, cell, number, one))
            if number % 10 == 9:
                print(f"{condition}: {number + 1} of {count}, {kept.spent / 60:.1f} min", flush=True)
    return found


def subject(name: str, task: str) -> Trial:
    row = environments.load(name)
    if row.lock is not None:
        builds.make(row)
    settings = Settings(device="cpu", threads=1, malloc="steady")
    return Trial(row, row, (Cell(task, "infer"),), METRICS, settings, seed=0, budget=0.0, scale=SCALE)


def launch(kept: record.Record, cell: str, number: int, one: Trial) -> Launch:
    def measure() -> record.Entry:
        return trial.launched(one, one.cells[0], "old", one.settings, one.scale)

    entry = kept.once(cell, number, launch=measure)
    if trial.failure(entry):
        raise SystemExit(f"{cell}: {trial.failure(entry)}")
    run = Run.from_dict(entry["run"])
    values = {metric.name: value for metric in METRICS if (value := metric.of(run))}
    return Launch(run.counted, values, entry["took"])


@contextlib.contextmanager
def neighbour(condition: str, *, needed: bool):
    """A foreign process that is always busy, where the condition is that."""
    if condition == "quiet" or not needed:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        yield
    finally:
        process.kill()
        process.wait()
