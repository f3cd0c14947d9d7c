"""``stele defaults``: what a framework does when nothing is passed, and what of it changed between two releases."""

import argparse
from typing import Any

from stele import environments
from stele.parity import defaults
from stele.report import parity as parity_page


def add(commands: Any) -> None:
    command = commands.add_parser("defaults", help="what does a framework do when nothing is passed?")
    command.add_argument("old", metavar="FRAMEWORK", help="a row, or a requirement such as jax==0.9.2")
    command.add_argument("new", metavar="NEW", nargs="?", help="shows what changed from FRAMEWORK to NEW")
    command.set_defaults(command=show)


def show(arguments: argparse.Namespace) -> int:
    if arguments.new is None:
        [row] = environments.ready([arguments.old])
        print("\n".join(parity_page.facts(defaults.record(row))))
        print(f"\nkept in {defaults.file(row)}")
        return 0
    old, new = environments.ready([arguments.old, arguments.new])
    changes = defaults.changes(*(defaults.kept(row) or defaults.record(row) for row in (old, new)))
    print("\n".join(parity_page.changes(old.name, new.name, changes)))
    return 0
