"""What several commands ask alike: how to measure, and for how long."""

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


def steady(command: argparse.ArgumentParser, *, budget: str) -> None:
    """How launches are kept alike, and how long they may take."""
    command.add_argument(
        "--budget", type=seconds, default=budget, metavar="TIME", help="default: %(default)s"
    )
    command.add_argument("--threads", type=int, default=1, help="default: %(default)s, the steadiest")
    command.add_argument("--malloc", choices=MALLOC, default="steady", help="default: %(default)s")


def of_cells(command: argparse.ArgumentParser) -> None:
    """Which cells."""
    command.add_argument("--task", metavar="ID,…", default="cnn,gru", help="default: %(default)s")
    command.add_argument("--phase", choices=PHASES, help="default: both")


def cells(task: str, phase: str | None) -> tuple[Cell, ...]:
    """Those that were typed. Raises SteleError, with the nearest name, if one is none."""
    named = chosen("task", task, tasks.NAMES)
    return tuple(Cell(name, one) for name in named for one in ([phase] if phase else PHASES))


def chosen(kind: str, text: str, known: tuple[str, ...]) -> list[str]:
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in known:
            raise SteleError(environments.unknown(kind, name, known))
    if not names:
        raise SteleError(f"--{kind} {text!r} names none of {', '.join(known)}.")
    return names


def seconds(text: str) -> float:
    """``90s``, ``20m``, ``1.5h``"""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 90s, 20m or 1.5h")
    return float(found[1]) * UNITS[found[2]]


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
