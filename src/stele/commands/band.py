"""``stele band``: measure the accuracy band of a task, over seeds."""

import argparse
from dataclasses import dataclass
from typing import Any

from stele import text
from stele.commands import options
from stele.commands.time_to_accuracy import FOLDER, require_trainable, select
from stele.errors import SteleError
from stele.measuring import processors
from stele.measuring.run import Run
from stele.measuring.settings import Settings
from stele.parity import accuracy
from stele.time_to_accuracy import seeds
from stele.time_to_accuracy.seeds import Training
from stele_suite import tasks

SEEDS, MIN_SEEDS = 10, accuracy.MIN_SEEDS


@dataclass(frozen=True, kw_only=True)
class BandOptions:
    task: str
    scale: str
    framework: str = "torch"
    seeds: int = SEEDS


def add(commands: Any) -> None:
    command = commands.add_parser("band", help="measure an accuracy band over seeds")
    command.add_argument("--task", metavar="ID", required=True, help="a task with data, such as cnn")
    command.add_argument(
        "--scale",
        required=True,
        help=f"{', '.join(tasks.SCALES)}; for a task with target accuracies, a scale that has one, such as cpu",
    )
    command.add_argument("--framework", type=parse_one, metavar="ID", help="default: %(default)s")
    command.add_argument(
        "--seeds",
        type=options.parse_count,
        metavar="N",
        help="at least 5; default: %(default)s",
    )
    options.declare(command, band, BandOptions)


def parse_one(name: str) -> str:
    if not name or "," in name:
        raise argparse.ArgumentTypeError("a band needs exactly one framework")
    return name


def band(chosen: BandOptions) -> int:
    """Train from each seed, then record the accuracies and print the band. Returns 0.

    The trainings are those of ``stele time-to-accuracy``. An interrupted command continues after the saved seeds.
    """
    if chosen.seeds < MIN_SEEDS:
        raise SteleError(f"--seeds {chosen.seeds} is too small: a band needs at least {MIN_SEEDS} seeds.")
    require_trainable(chosen.task, chosen.scale)
    require_scale(chosen.task, chosen.scale)
    settings = Settings(threads=processors.count(), malloc="steady")
    training = Training(chosen.task, chosen.scale, settings, chosen.seeds, FOLDER)
    [environment] = select(chosen.framework, training)
    runs = []
    for run in seeds.train(environment, training):
        runs.append(run)
        print(f"seed {run.settings.seed}: {run.learning.accuracy:.2%}", flush=True)
    print(record(runs))
    seeds.finish(environment, training)
    return 0


def require_scale(task: str, scale: str) -> None:
    """Raise SteleError unless the ladder or the time to accuracy compares trainings at this scale with a band."""
    scales = accuracy.scales(task)
    if scale not in scales:
        raise SteleError(text.unknown_message("scale", scale, scales, of=f"for a band of task {task}"))


def record(runs: list[Run]) -> accuracy.Band | None:
    """Record the accuracies of all seeds, and return their band."""
    accuracies = [round(run.learning.accuracy, 6) for run in runs if run.learning.accuracy is not None]
    source = f"{len(runs)} seeds of {text.versions(runs[0].framework.versions)}, {runs[-1].when[:10]}"
    accuracy.add(runs[0], accuracies, source)
    return accuracy.measured_band(accuracy.BandEntry(accuracies, source))
