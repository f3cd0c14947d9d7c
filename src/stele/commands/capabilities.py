"""``stele capabilities``: check the capabilities of each framework beyond the Tasks."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stele import environments, files, schema
from stele.commands import options
from stele.measuring.settings import Settings
from stele.parity import capabilities
from stele.parity.capabilities import CapabilitiesFile
from stele.report import page
from stele.report import parity as parity_page


@dataclass(frozen=True, kw_only=True)
class CapabilitiesOptions:
    framework: tuple[str, ...] = ()
    json: Path | None = None
    write: Path | None = None


def add(commands: Any) -> None:
    command = commands.add_parser("capabilities", help="show what each framework can do beyond the tasks")
    command.add_argument(
        "--framework", metavar="ID[,ID...]", action="append", help="environments; default: all that are ready"
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="write every answer and its reason to FILE")
    command.add_argument(
        "--write", type=Path, metavar="FILE", help="write the table between the markers of the page FILE"
    )
    options.declare(command, check, CapabilitiesOptions)


def check(chosen: CapabilitiesOptions) -> int:
    """Print the answers of each framework. Returns 1 if an answer is wrong or failed, else 0; "no" is no failure."""
    settings = Settings(device="cpu", threads=1)
    answers = {}
    for environment in environments.load_ready(chosen.framework):
        if environment.base is None:  # the capabilities do not depend on the mode
            answers[environment] = capabilities.answers(environment, settings, say=say)
            print("\n".join(parity_page.answer_lines(environment.name, answers[environment])), flush=True)
    if chosen.json:
        content = CapabilitiesFile({environment.name: by_name for environment, by_name in answers.items()})
        files.write_output_text(chosen.json, schema.document(content))
    if chosen.write:
        page.fill(chosen.write, parity_page.capability_table(answers))
    statuses = {answer.status for by_name in answers.values() for answer in by_name.values()}
    return int(not statuses.isdisjoint(("wrong", "failed")))


def say(line: str) -> None:
    if sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)
