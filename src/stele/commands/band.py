"""``stele band``: measure the accuracy band of a task, over seeds."""

import argparse
import sys
from typing import Any

from stele import environments, text
from stele.commands import options
from stele.errors import SteleError
from stele.measuring import measure, progress, worker
from stele.measuring.run import Run
from stele.measuring.settings import Settings
from stele.parity import accuracy
from stele_worker import tasks

SEEDS, MIN_SEEDS = 10, accuracy.MIN_SEEDS


def add(commands: Any) -> None:
    command = commands.add_parser("band", help="measure an accuracy band over seeds")
    command.add_argument("--task", choices=("cnn", "gru"), required=True)
    command.add_argument("--scale", choices=tasks.SCALES, required=True)
    command.add_argument("--framework", metavar="ID", default="torch", help="default: %(default)s")
    command.add_argument(
        "--seeds",
        type=options.parse_count,
        default=SEEDS,
        metavar="N",
        help="at least 5; default: %(default)s",
    )
    command.set_defaults(command=band)


def band(arguments: argparse.Namespace) -> int:
    """Train from each seed, record the accuracies after each one, and print the band. Returns 0."""
    if arguments.seeds < MIN_SEEDS:
        raise SteleError(f"--seeds {arguments.seeds}: a band needs at least {MIN_SEEDS} seeds.")
    environment = environments.load(arguments.framework)
    fields, notice = measure.inputs(arguments.task)
    print(notice or f"{arguments.task}: data {fields['data_origin']['origin']}", file=sys.stderr)
    plan = measure.Plan(task=arguments.task, phase="train", scale=arguments.scale, **fields)
    accuracies = recorded_accuracies(arguments, plan)
    for seed in range(len(accuracies), arguments.seeds):
        settings = Settings(seed=seed)
        title = f"{environment.name} {arguments.task}, seed {seed}"
        with worker.launch(environment, settings) as live, progress.bar(title) as show:
            run = measure.measure(live, plan, settings, progress=show)
        if run.accuracy is None:
            raise SteleError(f"Task '{arguments.task}' has no accuracy, so it has no band.")
        require_same_release(run)
        accuracies.append(round(run.accuracy, 6))
        source = f"{len(accuracies)} seeds of {text.versions(run.versions)}, {run.when[:10]}"
        accuracy.add(run, accuracies, source)
        print(f"seed {seed}: {run.accuracy:.2%}", flush=True)
    entry = accuracy.entry(arguments.task, arguments.scale, plan.data_origin["fingerprint"])
    print(accuracy.measured_band(entry) if entry else "No accuracy was measured.")
    return 0


def recorded_accuracies(arguments: argparse.Namespace, plan: measure.Plan) -> list[float]:
    """Return the recorded accuracies of an incomplete band, so that its seeds are not trained again."""
    entry = accuracy.entry(arguments.task, arguments.scale, plan.data_origin["fingerprint"])
    if entry is None or len(entry["accuracies"]) >= MIN_SEEDS:
        return []
    print(f"continuing after {entry['source']}", file=sys.stderr)
    return list(entry["accuracies"])


def require_same_release(run: Run) -> None:
    """Raise SteleError if an incomplete band was measured with a different release."""
    recorded, current = (
        accuracy.entry(run.task, run.scale, run.data["fingerprint"]),
        text.versions(run.versions),
    )
    if recorded and len(recorded["accuracies"]) < MIN_SEEDS and current not in recorded["source"]:
        raise SteleError(
            f"The band was started with {recorded['source']}, but this is {current}. Install that release, "
            f"or delete the entry in {accuracy.FILE.name} and restart."
        )
