"""``stele band``: the band of accuracies that seeds alone make."""

import argparse
import sys
from typing import Any

from stele import environments, text
from stele.errors import SteleError
from stele.measuring import measure, progress, worker
from stele.measuring.run import Run
from stele.measuring.settings import Settings
from stele.parity import accuracy
from stele_worker import tasks

SEEDS, FEWEST_SEEDS = 10, accuracy.FEWEST


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
    accuracies = known(arguments, plan)
    for seed in range(len(accuracies), arguments.seeds):
        settings = Settings(seed=seed)
        title = f"{environment.name} {arguments.task}, seed {seed}"
        with worker.live(environment, settings) as live, progress.bar(title) as show:
            run = measure.measure(live, plan, settings, progress=show)
        if run.accuracy is None:
            raise SteleError(f"{arguments.task} has no accuracy to measure.")
        refuse_another_release(run)
        accuracies.append(round(run.accuracy, 6))
        source = f"{len(accuracies)} seeds of {text.releases(run.versions)}, {run.when[:10]}"
        accuracy.add(run, accuracies, source)
        print(f"seed {seed}: {run.accuracy:.2%}", flush=True)
    entry = accuracy.entry(arguments.task, arguments.scale, plan.data_origin["fingerprint"])
    print(accuracy.measured(entry) if entry else "nothing was measured")
    return 0


def known(arguments: argparse.Namespace, plan: measure.Plan) -> list[float]:
    """The accuracies of the first seeds, where a band was begun that is none yet: hours may lie in them."""
    entry = accuracy.entry(arguments.task, arguments.scale, plan.data_origin["fingerprint"])
    if entry is None or len(entry["accuracies"]) >= FEWEST_SEEDS:
        return []
    print(f"going on after {entry['source']}", file=sys.stderr)
    return list(entry["accuracies"])


def refuse_another_release(run: Run) -> None:
    """Raises SteleError if the band was begun with another."""
    begun, here = accuracy.entry(run.task, run.scale, run.data["fingerprint"]), text.releases(run.versions)
    if begun and len(begun["accuracies"]) < FEWEST_SEEDS and here not in begun["source"]:
        raise SteleError(
            f"The band was begun with {begun['source']}, this is {here}: take that release, "
            f"or delete the entry in {accuracy.FILE.name} and begin anew."
        )
