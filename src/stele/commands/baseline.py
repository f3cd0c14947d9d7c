"""``stele baseline promote``: what was saved becomes what later runs are held against."""

import argparse
from typing import Any

from stele.gate import baseline


def add(commands: Any) -> None:
    command = commands.add_parser("baseline", help="what this machine measured before")
    verbs = command.add_subparsers(required=True, metavar="VERB")
    verb = verbs.add_parser("promote", help="hold later runs against what --save-baseline wrote")
    verb.add_argument(
        "names", nargs="*", metavar="NAME", help="such as torch-cnn-train-cpu-fp32; default: all"
    )
    verb.set_defaults(command=promote)


def promote(arguments: argparse.Namespace) -> int:
    """Print each file: to be looked at with git diff, and committed."""
    for path in baseline.promote(arguments.names):
        print(path)
    return 0
