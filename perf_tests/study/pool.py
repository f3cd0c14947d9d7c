"""Pairs of launches of one release, recorded once: four cells, in the quiet and beside a busy foreign process."""

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
from stele.measuring.run import Run
from stele.measuring.settings import Settings

FOLDER = Path(".stele/study")
CONDITIONS = ("quiet", "busy")
# launches that take a second or two, so that a thousand of them are done in half an hour
CELLS = (("onnxruntime", "gru"), ("onnxruntime", "cnn"), ("openvino", "gru"), ("jax", "gru"))
ARMS = ("old", "control")
SCALE = "study"
BUSY = "while True: pass"


class Pair(NamedTuple):
    """The two Runs of a pair, in the order in which they took turns, and the seconds that it took."""

    runs: tuple[Run, Run]
    took: float


Pool = dict[str, list[Pair]]  # by cell, in the order of time


def recorded(condition: str, count: int, *, only_read: bool) -> Pool:
    """Passes over the cells, until each has so many pairs. Goes on where an earlier study stopped."""
    path = FOLDER / f"{condition}.jsonl"
    cells = {f"{name} {task}": subject(name, task) for name, task in CELLS}
    first = next(iter(cells.values()))
    kept = record.resume(path) if path.exists() else record.new(path, trial.header(first))
    trial.refuse_another(kept, first)
    found: Pool = {cell: [] for cell in cells}
    whole = kept.launches >= 2 * count * len(cells)
    with neighbour(condition, needed=not only_read and not whole):
        for number in range(count):
            for cell, one in cells.items():
                if only_read and kept.get(cell, number) is None:
                    continue
                found[cell].append(pair(kept, cell, number, one))
            if number % 10 == 9:
                print(f"{condition}: {number + 1} of {count}, {kept.spent / 60:.1f} min", flush=True)
    return found


def subject(name: str, task: str) -> Trial:
    row = environments.load(name)
    if row.lock is not None:
        builds.make(row)
    settings = Settings(device="cpu", threads=1, malloc="steady")
    return Trial(row, row, (Cell(task, "infer"),), METRICS, settings, seed=0, budget=0.0, scale=SCALE)


def pair(kept: record.Record, cell: str, number: int, one: Trial) -> Pair:
    def launch() -> record.Entry:
        return trial.launched(one, one.cells[0], ARMS, one.settings, one.scale)

    entry = kept.once(cell, number, launch=launch)
    for said in trial.failed(entry).values():
        raise SystemExit(f"{cell}: {said}")
    first, second = [Run.from_dict(entry["runs"][arm]) for arm in ARMS]
    return Pair((first, second), entry["took"])


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
