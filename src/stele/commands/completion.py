"""``stele completion``: print a script with which a shell completes commands, options and files."""

import argparse
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stele.commands import examples, options

PATHS = ("FILE", "FOLDER", "PAGE", "PATH")  # metavars of arguments that are paths


@dataclass(frozen=True, kw_only=True)
class CompletionOptions:
    shell: str


def add(commands: Any, top: argparse.ArgumentParser) -> None:
    """Add the subcommand to the parser of all subcommands, ``top``."""
    import shtab

    about = "print a script for your shell, which completes commands, options and files"
    command = commands.add_parser("completion", help=about, description=about)
    command.add_argument("shell", choices=shtab.SUPPORTED_SHELLS)
    options.declare(command, functools.partial(completion, top), CompletionOptions)


def completion(top: argparse.ArgumentParser, chosen: CompletionOptions) -> int:
    """Print the script with which a shell completes commands, options and paths. Returns 0."""
    import shtab

    mark_paths(top)
    print(shtab.complete(top, shell=chosen.shell))
    return 0


def mark_paths(top: argparse.ArgumentParser) -> None:
    """Let the shell complete files for each argument that is a path."""
    import shtab

    for _, parser in examples.parsers(top):
        for action in parser._actions:
            if action.metavar in PATHS or action.type is Path:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
