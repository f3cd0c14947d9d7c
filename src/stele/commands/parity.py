"""``stele parity``: the golden numbers, made anew with the oracle."""

import argparse
from typing import Any

from stele import environments, measure, parity, worker
from stele.settings import Settings
from stele_worker import tasks


def add(commands: Any) -> None:
    command = commands.add_parser("parity", help="the golden numbers")
    command.add_argument(
        "--rebase", action="store_true", required=True, help="make them anew with the oracle"
    )
    command.add_argument("--task", choices=tasks.NAMES, action="append", help="default: all")
    command.set_defaults(command=rebase)


def rebase(arguments: argparse.Namespace) -> int:
    settings = Settings(device="cpu")
    for task in arguments.task or tasks.NAMES:
        for form in (None, *tasks.forms(task)):
            numbers: dict[str, Any] = {}
            with worker.live(environments.ORACLE, settings) as live:
                measure.configure(live, settings)
                for phase in ("infer", "train"):
                    numbers.update(
                        live.ask("parity", task=task, phase=phase, seed=parity.SEEDS[task], form=form)
                    )
            print(parity.save(task, form, numbers))
    return 0
