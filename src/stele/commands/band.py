"""``stele band``: the band of accuracies that seeds alone make."""

import argparse
import sys
from typing import Any

from stele import accuracy, environments, measure, report, worker
from stele.errors import SteleError
from stele.settings import Settings
from stele_worker import tasks

SEEDS, FEWEST_SEEDS = 10, 5


def add(commands: Any) -> None:
    command = commands.add_parser("band", help="measure the band of accuracies over seeds")
    command.add_argument("--task", choices=("cnn", "gru"), required=True)
    command.add_argument("--scale", choices=tasks.SCALES, required=True)
    command.add_argument("--framework", metavar="ID", default="torch", help="default: %(default)s")
    command.add_argument("--seeds", type=int, default=SEEDS, help="at least 5; default: %(default)s")
    command.set_defaults(command=band)


def band(arguments: argparse.Namespace) -> int:
    if arguments.seeds < FEWEST_SEEDS:
        raise SteleError(f"--seeds {arguments.seeds}: a band needs at least {FEWEST_SEEDS}.")
    environment = environments.load(arguments.framework)
    fields, notice = measure.inputs(arguments.task)
    print(notice or f"{arguments.task}: data {fields['data_origin']['origin']}", file=sys.stderr)
    plan = measure.Plan(task=arguments.task, phase="train", scale=arguments.scale, **fields)
    accuracies = []
    for seed in range(arguments.seeds):
        settings = Settings(seed=seed)
        with worker.live(environment, settings) as live:
            run = measure.measure(live, plan, settings)
        if run.accuracy is None:
            raise SteleError(f"{arguments.task} has no accuracy to measure.")
        accuracies.append(round(run.accuracy, 6))
        print(f"seed {seed}: {run.accuracy:.2%}", flush=True)
    source = f"{arguments.seeds} seeds of {report.version(run)}, {run.when[:10]}"
    accuracy.add(run, accuracies, source)
    print(accuracy.band(run))
    return 0
