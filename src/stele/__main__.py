"""The ``stele`` command: a door, that parses, calls and prints."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from stele import accuracy, environments, files, measure, parity, report, store
from stele.errors import SteleError
from stele.settings import Settings
from stele.worker import Worker
from stele_worker import tasks

SEEDS, FEWEST_SEEDS = 10, 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when all is well, 2 on an error that the user can act on."""
    chosen = parser().parse_args(arguments)
    try:
        chosen.command(chosen)
    except SteleError as error:
        print(f"stele: {error}", file=sys.stderr)
        return 2
    return 0


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="stele", description=__doc__.partition(":")[0])
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("table", help="Runs as Markdown tables")
    command.add_argument("--runs", type=Path, default=Path(".stele/runs"), help="default: %(default)s")
    command.add_argument("--write", type=Path, metavar="FILE", help="put them between FILE's markers")
    command.set_defaults(command=table)

    command = commands.add_parser("parity", help="the golden numbers")
    command.add_argument(
        "--rebase", action="store_true", required=True, help="make them anew with the oracle"
    )
    command.add_argument("--task", choices=tasks.NAMES, action="append", help="default: all")
    command.set_defaults(command=rebase)

    command = commands.add_parser("band", help="measure the band of accuracies over seeds")
    command.add_argument("--task", choices=("cnn", "gru"), required=True)
    command.add_argument("--scale", choices=tasks.SCALES, required=True)
    command.add_argument(
        "--framework", choices=environments.names(), default="torch", help="default: %(default)s"
    )
    command.add_argument("--seeds", type=int, default=SEEDS, help="at least 5; default: %(default)s")
    command.set_defaults(command=band)
    return top


def table(chosen: argparse.Namespace) -> None:
    text = report.markdown(store.load_all(chosen.runs))
    if chosen.write is None:
        print(text)
        return
    old = chosen.write.read_text(encoding="utf-8")
    files.write_text(chosen.write, report.between_markers(old, text, chosen.write.name))


def rebase(chosen: argparse.Namespace) -> None:
    settings = Settings(device="cpu")
    for task in chosen.task or tasks.NAMES:
        numbers = {}
        with live(environments.ORACLE, settings) as worker:
            measure.configure(worker, settings)
            for phase in ("infer", "train"):
                numbers.update(worker.ask("parity", task=task, phase=phase, seed=parity.SEED))
        print(parity.save(task, numbers))


def band(chosen: argparse.Namespace) -> None:
    if chosen.seeds < FEWEST_SEEDS:
        raise SteleError(f"--seeds {chosen.seeds}: a band needs at least {FEWEST_SEEDS}.")
    fields, notice = measure.inputs(chosen.task)
    print(notice or f"{chosen.task}: data {fields['data_origin']['origin']}", file=sys.stderr)
    plan = measure.Plan(task=chosen.task, phase="train", scale=chosen.scale, **fields)
    accuracies = []
    for seed in range(chosen.seeds):
        settings = Settings(seed=seed)
        with live(environments.load(chosen.framework), settings) as worker:
            run = measure.measure(worker, plan, settings)
        if run.accuracy is None:
            raise SteleError(f"{chosen.task} has no accuracy to measure.")
        accuracies.append(round(run.accuracy, 6))
        print(f"seed {seed}: {run.accuracy:.2%}", flush=True)
    source = f"{chosen.seeds} seeds of {report.version(run)}, {run.when[:10]}"
    accuracy.add(run, accuracies, source)
    print(accuracy.band(run))


def live(environment: environments.Environment, settings: Settings) -> Worker:
    log = Path(".stele/logs") / f"{environment.name}.log"
    return Worker(environment, log=log, variables=settings.variables())


if __name__ == "__main__":
    sys.exit(main())
