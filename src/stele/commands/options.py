"""Options that several commands share: which cells to measure, how, and for how long."""

import argparse
import re
import sys

from stele import environments
from stele.errors import SteleError
from stele.gate.trial import Cell
from stele.measuring.settings import MALLOC
from stele_worker import tasks

PHASES = ("train", "infer")
UNITS = {"s": 1, "m": 60, "h": 3600}


def add_launch_options(command: argparse.ArgumentParser, *, budget: str) -> None:
    """Add the options that make launches repeatable, and the one that limits their time."""
    command.add_argument(
        "--budget",
        type=parse_duration,
        default=budget,
        metavar="TIME",
        help="time limit, such as 20m; default: %(default)s",
    )
    command.add_argument(
        "--threads", type=int, default=1, help="default: %(default)s, which varies least between launches"
    )
    command.add_argument(
        "--malloc",
        choices=MALLOC,
        default="steady",
        help="profile of the C library's allocator; default: %(default)s",
    )


def add_cell_options(command: argparse.ArgumentParser) -> None:
    """Add the options that select cells."""
    command.add_argument("--task", metavar="ID[,ID...]", default="cnn,gru", help="default: %(default)s")
    command.add_argument("--phase", choices=PHASES, help="default: both")


def parse_cells(task: str, phase: str | None) -> tuple[Cell, ...]:
    """Return the cells that ``--task`` and ``--phase`` select.

    Raises SteleError, with the nearest name, for an unknown task.
    """
    names = parse_names("task", task, tasks.NAMES)
    return tuple(Cell(name, part) for name in names for part in ([phase] if phase else PHASES))


def parse_names(kind: str, text: str, choices: tuple[str, ...]) -> list[str]:
    """Return the comma-separated names in ``text``. Raises SteleError for an unknown name, or if there is none."""
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in choices:
            raise SteleError(environments.unknown_message(kind, name, choices))
    if not names:
        raise SteleError(f"--{kind} {text!r} contains no name. Choose from: {', '.join(choices)}.")
    return names


def parse_duration(text: str) -> float:
    """Return the seconds in ``90s``, ``20m`` or ``1.5h``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration. Write it as 90s, 20m or 1.5h")
    return float(match[1]) * UNITS[match[2]]


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
