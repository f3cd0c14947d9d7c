"""Pairs of launches of one release, recorded once: four cells, on a quiet machine and next to a busy process."""

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
# these launches take a second or two, so that a thousand of them take half an hour
CELLS = (("onnxruntime", "gru"), ("onnxruntime", "cnn"), ("openvino", "gru"), ("jax", "gru"))
ARMS = ("old", "control")
SCALE = "study"
BUSY = "while True: pass"


class Pair(NamedTuple):
    """The two Runs of a pair, in the order in which they took turns, and the seconds that it took."""

    runs: tuple[Run, Run]
    took: float


Pool = dict[str, list[Pair]]  # by cell, in the order of time


def load_or_record(condition: str, count: int, *, only_read: bool) -> Pool:
    """Return ``count`` pairs of each cell, measured pass by pass. Pairs of an earlier study are not repeated."""
    path = FOLDER / f"{condition}.jsonl"
    trials = {f"{name} {task}": make_trial(name, task) for name, task in CELLS}
    first = next(iter(trials.values()))
    log = record.resume(path) if path.exists() else record.create(path, trial.header(first))
    trial.check_record(log, first)
    pool: Pool = {cell: [] for cell in trials}
    complete = log.launches >= 2 * count * len(trials)
    with foreign_process(condition, needed=not only_read and not complete):
        for number in range(count):
            for cell, subject in trials.items():
                if only_read and log.get(cell, number) is None:
                    continue
                pool[cell].append(measure_pair(log, cell, number, subject))
            if number % 10 == 9:
                print(f"{condition}: {number + 1} of {count}, {log.spent / 60:.1f} min", flush=True)
    return pool


def make_trial(name: str, task: str) -> Trial:
    environment = environments.load(name)
    if environment.lock is not None:
        builds.make(environment)
    settings = Settings(device="cpu", threads=1, malloc="steady")
    cells = (Cell(task, "infer"),)
    return Trial(environment, environment, cells, METRICS, settings, seed=0, budget=0.0, scale=SCALE)


def measure_pair(log: record.Record, cell: str, number: int, subject: Trial) -> Pair:
    def launch() -> record.Entry:
        return trial.launch_arms(subject, subject.cells[0], ARMS, subject.settings, subject.scale)

    entry = log.get_or_launch(cell, number, launch=launch)
    for message in trial.failure_messages(entry).values():
        raise SystemExit(f"{cell}: {message}")
    first, second = [Run.from_dict(entry["runs"][arm]) for arm in ARMS]
    return Pair((first, second), entry["took"])


@contextlib.contextmanager
def foreign_process(condition: str, *, needed: bool):
    """Run a process that is always busy, if the condition is "busy"."""
    if condition == "quiet" or not needed:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        yield
    finally:
        process.kill()
        process.wait()
