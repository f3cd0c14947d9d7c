"""Options that several commands share: which cells to measure, how, and for how long."""

import argparse
import math
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stele import environments
from stele.environments import lockfiles, revisions
from stele.errors import SteleError
from stele.gate.trial import AT_ONCE, TIMEOUT, Cell
from stele.measuring import measure, processors
from stele.measuring.settings import MALLOC, PRECISIONS, SCALINGS, SEEDS, THREADS
from stele.measuring.worker import MAX_TIMEOUT
from stele.models import inputs, spec
from stele.models.arms import Extras
from stele.models.inputs import Input
from stele.models.spec import Model
from stele_worker import tasks

PHASES = ("train", "infer")
UNITS = {"s": 1, "m": 60, "h": 3600}
# of a command without the options of several devices
ONE_DEVICE: dict[str, Any] = {"devices": 1, "scaling": SCALINGS[0]}


def add_budget(command: argparse.ArgumentParser, default: str) -> None:
    """Add the option that limits the time of the launches."""
    command.add_argument(
        "--budget",
        type=parse_duration,
        default=default,
        metavar="TIME",
        help="time limit, such as 20m; default: %(default)s",
    )


def add_launch_options(command: argparse.ArgumentParser) -> None:
    """Add the options that make launches repeatable, of a command that locks this machine."""
    command.add_argument(
        "--no-wait",
        action="store_true",
        help="exit if another measurement runs on this machine, instead of waiting for it",
    )
    add_process_options(command)


def add_process_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the process of a framework."""
    command.add_argument(
        "--threads",
        type=parse_count,
        metavar="N",
        help="default: 1, which varies least between launches",
    )
    command.add_argument(
        "--malloc",
        choices=MALLOC,
        default="plain",
        help="plain: the C library's allocator as it is; steady: it keeps freed memory, so launches differ less, but a "
        "change of what is allocated may be hidden; default: %(default)s",
    )


def add_precision(command: argparse.ArgumentParser) -> None:
    """Add the option of the arithmetic, of which ``conditions_from`` knows the default."""
    command.add_argument(
        "--precision", choices=PRECISIONS, help="default: fp32; with --model the framework's own: default"
    )


def conditions_from(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of Settings that depend on whose model is measured: the user's runs as the user runs it."""
    precision = "fp32" if arguments.model is None else "default"
    return {
        "threads": threads_from(arguments),
        "precision": getattr(arguments, "precision", None) or precision,
    }


def threads_from(arguments: argparse.Namespace) -> int:
    """Return --threads; else, for a model of the user, OMP_NUM_THREADS, with one processor left for other processes."""
    own = os.environ.get(THREADS, "") if getattr(arguments, "model", None) is not None else ""
    asked = int(own) if own.isdecimal() else 1
    return int(getattr(arguments, "threads", None) or max(min(asked, processors.count() - 1), 1))


def add_devices(command: argparse.ArgumentParser) -> None:
    """Add the options of training on several devices."""
    command.add_argument(
        "--devices",
        type=parse_count,
        default=1,
        metavar="N",
        help="train on so many devices, each with its threads; default: %(default)s",
    )
    command.add_argument(
        "--scaling",
        choices=SCALINGS,
        default=SCALINGS[0],
        help="weak: the batch grows with the devices; strong: it is divided; default: %(default)s",
    )


def add_at_once(command: argparse.ArgumentParser) -> None:
    """Add the option that says how many passes are measured at the same time."""
    command.add_argument(
        "--at-once",
        type=parse_count,
        default=AT_ONCE,
        metavar="N",
        help="passes that are measured at the same time, if each has a core of its own and there is enough memory; "
        "default: %(default)s",
    )


def add_fleet_options(command: argparse.ArgumentParser) -> None:
    """Add the options that select the machines of a fleet."""
    command.add_argument(
        "--address",
        metavar="ADDRESS",
        help="address of a Ray cluster: auto on one of its nodes; default: Ray on this machine, for this command",
    )
    command.add_argument(
        "--type",
        action="append",
        default=[],
        metavar="TYPE",
        help="a device type of the nodes, such as H100 or the name of a processor; may be repeated; default: any",
    )


def add_trial_options(command: argparse.ArgumentParser) -> None:
    """Add the options of a trial that the user seldom needs."""
    add_at_once(command)
    command.add_argument(
        "--seed",
        type=parse_seed,
        default=0,
        metavar="N",
        help="seed of the random orders; default: %(default)s",
    )
    add_worker_timeout(command)


def add_worker_timeout(command: argparse.ArgumentParser) -> None:
    """Add the option that says when a worker hangs."""
    command.add_argument(
        "--worker-timeout",
        type=parse_timeout,
        default=TIMEOUT,
        metavar="SECONDS",
        help="longest silence of a worker; default: %(default)s",
    )


def add_model_options(command: argparse.ArgumentParser) -> None:
    """Add the options that name a model of the user, and what both arms need for it."""
    group = command.add_argument_group("a model of your own")
    group.add_argument(
        "--model",
        metavar="SPEC",
        help="package.module:attribute, path/file.py:attribute, torchvision:NAME, timm:NAME, keras:NAME, "
        "hf:TYPE_OR_FOLDER or hf-tiny:TYPE_OR_FOLDER, in place of the built-in tasks",
    )
    group.add_argument(
        "--input",
        metavar="INPUT[,INPUT...]",
        type=parse_inputs,
        help="its inputs, such as 8x3x64x64 or ids=int:4x128:30522,mask=mask:4x128; default: inferred",
    )
    group.add_argument("--optimizer", metavar="MODULE:CLASS", help="its optimizer; default: SGD")
    group.add_argument(
        "--pretrained", metavar="FILE", help="its weights, a safetensors file; default: seeded"
    )
    group.add_argument(
        "--weights-map",
        metavar="FILE",
        help="a JSON or TOML file {NEW's name of a parameter: OLD's name}, if NEW renames parameters",
    )
    group.add_argument(
        "--with",
        dest="requirements",
        metavar="REQUIREMENT",
        action="append",
        default=[],
        help="a package for both arms; may be repeated",
    )
    group.add_argument(
        "--with-project", metavar="FOLDER", type=Path, help="the dependencies of a project, for both arms"
    )
    group.add_argument(
        "--extra",
        dest="extras",
        metavar="NAME",
        action="append",
        default=[],
        help="an extra of the lock files and of --with-project; may be repeated",
    )
    group.add_argument("--python", metavar="VERSION", help="the Python of both arms, such as 3.11")
    group.add_argument("--allow-vcs", action="store_true", help="accept requirements such as NAME @ git+URL")


def parse_inputs(text: str) -> tuple[Input, ...]:
    try:
        return inputs.parse(text)
    except SteleError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def parse_model(arguments: argparse.Namespace) -> Model | None:
    """Return the model that ``--model`` names, or None. Raises SteleError if it cannot name one."""
    if arguments.model is None:
        return None
    names = ("optimizer", "pretrained", "weights_map")
    options = {name: getattr(arguments, name) for name in names}
    return spec.parse(arguments.model, Path.cwd(), inputs=arguments.input, **options)


def parse_extras(arguments: argparse.Namespace) -> Extras:
    """Return what both arms get. Raises SteleError if nothing has the extras of ``--extra``."""
    if arguments.extras and arguments.with_project is None and not names_lock_file(arguments):
        raise SteleError(
            "--extra selects packages of a lock file or of --with-project. Name one, or leave --extra out."
        )
    requirements = list(arguments.requirements)
    of_index: tuple[str, ...] = ()
    if arguments.with_project is not None:
        project = arguments.with_project / "pyproject.toml"
        locked = revisions.read(str(project), allow_vcs=arguments.allow_vcs, extras=arguments.extras)
        requirements += locked.requirements
        of_index = locked.options
    names = tuple(arguments.extras)
    return Extras(tuple(requirements), arguments.python, arguments.allow_vcs, names, of_index)


def names_lock_file(arguments: argparse.Namespace) -> bool:
    """Return whether OLD or NEW is a lock file, as it is with --changed. This may ask git."""
    if getattr(arguments, "changed", None) is not None:
        return True
    arms = [getattr(arguments, name, None) or "" for name in ("old", "new")]
    return any(lockfiles.is_lockfile(str(revisions.split(text)[0])) for text in arms)


def add_cell_options(command: argparse.ArgumentParser) -> None:
    """Add the options that select cells."""
    command.add_argument("--task", metavar="ID[,ID...]", default="cnn,gru", help="default: %(default)s")
    command.add_argument("--phase", choices=PHASES, help="default: both")


def parse_cells(task: str, phase: str | None) -> tuple[Cell, ...]:
    """Return the cells that ``--task`` and ``--phase`` select.

    Raises SteleError, with the nearest name, for an unknown task.
    """
    names = parse_names("task", task, tasks.NAMES)
    return tuple(cell for name in names for cell in phases_of(name, phase))


def phases_of(task: str, phase: str | None) -> tuple[Cell, ...]:
    """Return the cells of a task, or the one of its ``phase``."""
    return tuple(Cell(task, part) for part in ([phase] if phase else PHASES))


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
    if match is None or not math.isfinite(float(match[1])):
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration. Write it as 90s, 20m or 1.5h")
    return float(match[1]) * UNITS[match[2]]


def parse_count(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def parse_seed(text: str) -> int:
    if not (text.isdecimal() and int(text) in SEEDS):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a seed. Write a whole number from 0 to {SEEDS[-1]}"
        )
    return int(text)


def parse_accuracy(text: str) -> float:
    """Return the fraction in ``94%`` or ``0.94``."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an accuracy. Write it as 94% or 0.94")
    return value


def parse_timeout(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= MAX_TIMEOUT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return seconds


def announce_inputs(names: Iterable[str]) -> None:
    """Find the data of the tasks before anything is timed, and say so if it is synthetic."""
    for name in dict.fromkeys(names):
        _, notice = measure.inputs(name)
        if notice:
            say(f"stele: {notice}")


def require_real_data(task: str, scale: str) -> None:
    """Raise SteleError if the data of a task is synthetic, except at scale smoke."""
    fields, _ = measure.inputs(task)
    if fields["data_origin"]["origin"] == "synthetic" and scale != "smoke":
        raise SteleError(
            f"The scale '{scale}' of '{task}' needs real data. Set STELE_DATA to a folder that has it, "
            "or choose the scale smoke."
        )


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
