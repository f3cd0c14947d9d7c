"""``stele capabilities``: what each framework can do beyond the Tasks, every status of it checked."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from stele import environments, files, schema
from stele.measuring.settings import Settings
from stele.parity import capabilities
from stele.report import page
from stele.report import parity as parity_page


def add(commands: Any) -> None:
    command = commands.add_parser("capabilities", help="what can each framework do beyond the tasks?")
    command.add_argument("--framework", metavar="ID,…", action="append", help="default: all that are ready")
    command.add_argument("--json", type=Path, metavar="FILE", help="write every answer with its reason")
    command.add_argument(
        "--write", type=Path, metavar="FILE", help="write the table between a page's markers"
    )
    command.set_defaults(command=ask)


def ask(arguments: argparse.Namespace) -> int:
    """Returns 1 if an answer is wrong or a framework failed; that it lacks something is no failure."""
    settings = Settings(device="cpu", threads=1)
    found = {}
    for row in environments.ready(arguments.framework):
        if row.tuned:  # as shipped it can do the same
            found[row] = capabilities.answers(row, settings, progress=say)
            print("\n".join(parity_page.answers(row.name, found[row])), flush=True)
    if arguments.json:
        facts = {
            row.name: {name: answer._asdict() for name, answer in of.items()} for row, of in found.items()
        }
        files.write_text(arguments.json, json.dumps(schema.stamped({"environments": facts}), indent=1) + "\n")
    if arguments.write:
        page.fill(arguments.write, parity_page.capabilities(found))
    return int(any(answer.status in ("wrong", "failed") for of in found.values() for answer in of.values()))


def say(line: str) -> None:
    if sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)
