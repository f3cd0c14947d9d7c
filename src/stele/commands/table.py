"""``stele table``: the tables of the Rosetta Stone, or this machine's steps, as Markdown."""

import argparse
from pathlib import Path
from typing import Any

from stele.measuring import store
from stele.report import page, published, results


def add(commands: Any) -> None:
    command = commands.add_parser("table", help="what was published then beside what was measured here")
    command.add_argument("--steps", action="store_true", help="milliseconds a step instead, as in README.md")
    command.add_argument("--runs", type=Path, default=Path(".stele/runs"), help="default: %(default)s")
    command.add_argument("--write", type=Path, metavar="FILE", help="put them between FILE's markers")
    command.set_defaults(command=table)


def table(arguments: argparse.Namespace) -> int:
    runs = store.load_all(arguments.runs)
    text = results.markdown(runs) if arguments.steps else published.tables(runs)
    if arguments.write is None:
        print(text)
        return 0
    page.fill(arguments.write, text)
    return 0
