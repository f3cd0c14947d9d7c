"""``stele table``: write the tables of the Rosetta Stone, or the step times of this machine, as Markdown."""

import argparse
from pathlib import Path
from typing import Any

from stele.measuring import store
from stele.measuring.run import PHASES
from stele.report import page, published, results


def add(commands: Any) -> None:
    command = commands.add_parser("table", help="compare published results with results of this machine")
    command.add_argument(
        "--steps", action="store_true", help="show milliseconds per step instead, as in README.md"
    )
    command.add_argument("--runs", type=Path, default=Path(".stele/runs"), help="default: %(default)s")
    command.add_argument(
        "--write", type=Path, metavar="FILE", help="write the tables between the markers of the page FILE"
    )
    command.set_defaults(command=table)


def table(arguments: argparse.Namespace) -> int:
    """Print the tables, or write them to a page. Returns 0."""
    runs = (run for run in store.load_each(arguments.runs) if run.phase in PHASES)
    text = results.markdown(runs) if arguments.steps else published.tables(runs)
    if arguments.write is None:
        print(text)
        return 0
    page.fill(arguments.write, text)
    return 0
