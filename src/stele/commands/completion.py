"""``stele completion``: print a script with which a shell completes commands, options and files."""

import argparse
import functools
from pathlib import Path
from typing import Any

from stele.commands import examples

PATHS = ("FILE", "FOLDER", "PAGE", "PATH")  # metavars of arguments that are paths


def add(commands: Any, top: argparse.ArgumentParser) -> None:
    """Add the subcommand to the parser of all subcommands, ``top``."""
    import shtab

    about = "print a script for your shell, which completes commands, options and files"
    command = commands.add_parser("completion", help=about, description=about)
    command.add_argument("shell", choices=shtab.SUPPORTED_SHELLS)
    command.set_defaults(command=functools.partial(completion, top))


def completion(top: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    """Print the script. Returns 0."""
    import shtab

    mark_paths(top)
    print(shtab.complete(top, shell=arguments.shell))
    return 0


def mark_paths(top: argparse.ArgumentParser) -> None:
    """Let the shell complete files for each argument that is a path."""
    import shtab

    for _, parser in examples.parsers(top):
        for action in parser._actions:
            if action.metavar in PATHS or action.type is Path:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
