"""The options of the commands: the groups that several share, and how a command line becomes one frozen value.

A command has a dataclass of its options. Its defaults are those of the parser, so each default is written once. The
dataclass may have groups, which are dataclasses, too. argparse ends here: ``from_arguments`` builds the value, and
everything else receives it.
"""

import argparse
import dataclasses
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, TypeVar

from stele import environments
from stele.environments import lockfiles, revisions
from stele.environments.arms import Extras
from stele.errors import SteleError
from stele.measuring import measure, processors
from stele.measuring.run import PHASES
from stele.measuring.settings import MALLOC, PRECISIONS, SCALINGS, SEEDS, THREADS
from stele.measuring.worker import MAX_TIMEOUT
from stele.subjects import Cell, Program, Subject, Tasks
from stele.subjects.model import inputs, spec
from stele.subjects.model.inputs import Input
from stele.subjects.model.spec import Model
from stele.subjects.programs import Tests, asv, command, function, tests
from stele_suite import tasks

NAMES = {"spec": "model", "requirements": "with", "extras": "extra"}  # of options whose field has another one
OF_MODEL = ("input", "optimizer", "pretrained", "weights_map")  # options that only a model has
UNITS = {"s": 1, "m": 60, "h": 3600}
Options = TypeVar("Options")


@dataclass(frozen=True, kw_only=True)
class CellOptions:
    """Which cells are measured."""

    task: str = "cnn,gru"
    phase: str | None = None  # None: both

    def tasks(self) -> Tasks:
        """Return the tasks. Raises SteleError, with the nearest name, for an unknown one."""
        return Tasks(tuple(parse_names("task", self.task, tasks.NAMES)))

    def cells(self) -> tuple[Cell, ...]:
        """Return the cells of the tasks. Raises SteleError, with the nearest name, for an unknown one."""
        return self.tasks().cells(self.phase)


@dataclass(frozen=True, kw_only=True)
class ProcessOptions:
    """How the process of a framework runs."""

    threads: int | None = None  # None: 1; for a model of the user, as many as the user's variable says
    malloc: str = "plain"


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """A model of the user, and what both arms need for it."""

    spec: str | None = None
    input: tuple[Input, ...] | None = None
    optimizer: str | None = None
    pretrained: str | None = None
    weights_map: str | None = None
    requirements: tuple[str, ...] = ()
    with_project: Path | None = None
    extras: tuple[str, ...] = ()
    python: str | None = None
    allow_vcs: bool = False

    def model(self) -> Model | None:
        """Return the model that ``--model`` names, or None. Raises SteleError if it cannot name one."""
        if self.spec is None:
            spec.refuse({name: getattr(self, name) for name in OF_MODEL})
            return None
        return spec.parse(
            self.spec,
            Path.cwd(),
            inputs=self.input,
            optimizer=self.optimizer,
            pretrained=self.pretrained,
            weights_map=self.weights_map,
        )

    def only_model(self, task: object = None) -> Model | None:
        """Return the model of a command in which all of these options belong to it. Raises SteleError as ``model``.

        ``task`` is what was typed for --task.
        """
        if self.spec is None:
            spec.refuse({NAMES.get(name, name): value for name, value in flat(self).items()})
        elif task:
            spec.refuse_task(task)
        return self.model()

    def of_arms(self, arms: Iterable[str] = (), *, changed: bool = False) -> Extras:
        """Return what both ``arms`` get; with ``changed``, they are lock files.

        Raises SteleError if nothing has the extras of ``--extra``. This may ask git.
        """
        if self.extras and self.with_project is None and not (changed or any(map(names_lock_file, arms))):
            raise SteleError(
                "--extra selects packages of a lock file or of --with-project. Name one, or leave --extra out."
            )
        requirements = self.requirements
        of_index: tuple[str, ...] = ()
        if self.with_project is not None:
            project = self.with_project / "pyproject.toml"
            if not project.is_file():
                raise SteleError(f"--with-project {self.with_project}: there is no {project}. Name another folder.")
            locked = revisions.read(str(project), allow_vcs=self.allow_vcs, extras=self.extras)
            requirements += tuple(locked.requirements)
            of_index = locked.options
        return Extras(requirements, self.python, self.allow_vcs, self.extras, of_index)


@dataclass(frozen=True, kw_only=True)
class ProgramOptions:
    """A program of the user, and what is judged of it."""

    program: tuple[str, ...] = ()  # the words after --
    function: str | None = None
    asv: str | None = None
    report: str | None = None
    better: tuple[str, ...] = ()
    only_outcomes: bool = False
    accept: str | None = None

    def subject(self, cells: CellOptions, model: ModelOptions) -> Program | None:
        """Return the program, or None. Raises SteleError for options that have no effect with it, or without it."""
        subjects = {
            "the command after --": self.program,
            "--function": self.function,
            "--asv": self.asv,
            "--model": model.spec,
        }
        several = [name for name, value in subjects.items() if value]
        if len(several) > 1:
            raise SteleError(f"{' and '.join(several)} exclude each other. Leave out one of them.")
        is_tests = bool(self.program) and tests.is_pytest(self.program)
        if (self.report or self.better) and (not self.program or is_tests):
            option = "--report" if self.report else "--better"
            raise SteleError(
                f"{option} needs a command of your own: stele gate OLD NEW {option} ... -- python train.py"
            )
        if self.accept and not is_tests:
            raise SteleError("--accept needs tests of your own: stele gate OLD NEW --accept rounding -- pytest tests")
        if not self.program and self.function is None and self.asv is None:
            if self.only_outcomes:
                raise SteleError("--only-outcomes needs code of your own: stele gate OLD NEW -- pytest tests")
            return None
        if cells != CellOptions():
            raise SteleError(f"--task and --phase have no effect with {several[0]}. Leave them out.")
        with_inputs = ("input",) if self.function else ()
        spec.refuse({name: getattr(model, name) for name in OF_MODEL if name not in with_inputs})
        if self.function is not None:
            return function.parse(self.function, Path.cwd(), model.input)
        if self.asv is not None:
            return asv.parse(self.asv, Path.cwd())
        if is_tests:
            return Tests(self.program, Path.cwd(), accept=self.accept)
        return command.parse(self.program, Path.cwd(), self.report, self.better)


def subject_of(cells: CellOptions, model: ModelOptions, program: ProgramOptions | None = None) -> Subject:
    """Return what the options name: a program or a model of the user, or tasks.

    Raises SteleError if there is no such thing.
    """
    if program is not None and (subject := program.subject(cells, model)) is not None:
        return subject
    if model.spec is not None and cells.task != CellOptions.task:
        spec.refuse_task(cells.task)
    return model.model() or cells.tasks()


@dataclass(frozen=True, kw_only=True)
class FleetOptions:
    """Which machines of a fleet measure."""

    address: str | None = None  # of a Ray cluster; None: this machine
    type: tuple[str, ...] = ()


@dataclass(frozen=True)
class NoOptions:
    """Of a command without options."""


def declare(
    command: argparse.ArgumentParser,
    run: Callable[[Options], int],
    kind: Callable[..., Options],
    *,
    check: Callable[[Options], object] | None = None,
) -> None:
    """Let a command run with a value of the dataclass ``kind``, whose defaults become those of the parser.

    ``check`` raises SteleError for what cannot be done, as far as the command line says it.
    """
    # argparse appends to a list of its own, and says None for what was not typed
    command.set_defaults(**{name: value for name, value in defaults_of(kind).items() if value not in (None, ())})
    command.set_defaults(command=run, options=kind, check=check)


def defaults_of(kind: Any) -> dict[str, object]:
    """Return the default of each option of a dataclass and of its groups, by name."""
    values: dict[str, object] = {}
    for option in dataclasses.fields(kind):
        default = option.default_factory() if option.default_factory is not MISSING else option.default
        if dataclasses.is_dataclass(option.type):
            values.update(defaults_of(option.type) if default is MISSING else flat(default))
        elif default is not MISSING:
            values[option.name] = default
    return values


def from_arguments(kind: Callable[..., Options], arguments: argparse.Namespace) -> Options:
    """Return the options of a command line as a value of the dataclass ``kind``.

    What was not typed has the default of its field.
    """
    values: dict[str, object] = {}
    for option in dataclasses.fields(kind):  # type: ignore[arg-type]
        if isinstance(option.type, type) and dataclasses.is_dataclass(option.type):
            values[option.name] = from_arguments(option.type, arguments)
            continue
        value = getattr(arguments, option.name, None)
        if value is not None:
            values[option.name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def split_program(typed: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of a command line before the first ``--``, and those after it."""
    words = list(typed)
    place = words.index("--") if "--" in words else len(words)
    return words[:place], words[place + 1 :]


def flat(options: Any) -> dict[str, object]:
    """Return the value of each option, by name, with those of the groups."""
    values: dict[str, object] = {}
    for option in dataclasses.fields(options):
        value = getattr(options, option.name)
        values.update(flat(value) if dataclasses.is_dataclass(value) else {option.name: value})
    return values


def add_budget(command: argparse.ArgumentParser, default: float) -> None:
    """Add the option that limits the time of the launches; the default is in seconds."""
    command.add_argument(
        "--budget",
        type=parse_duration,
        metavar="TIME",
        help=f"time limit, such as 20m; default: {format_duration(default)}",
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
        help="plain: the C library's allocator as it is; mmap: it returns freed memory at once, so the peak memory "
        "differs less; steady: it keeps freed memory, so durations differ less; both may hide a change of what is "
        "allocated; default: %(default)s",
    )


def add_precision(command: argparse.ArgumentParser) -> None:
    """Add the option of the arithmetic, of which ``precision_of`` knows the default."""
    command.add_argument(
        "--precision", choices=PRECISIONS, help="default: fp32; with --model the framework's own: default"
    )


def precision_of(precision: str | None, *, tuned: bool) -> str:
    """Return the arithmetic; without --precision, what is not ``tuned`` computes as the user runs it."""
    return precision or ("fp32" if tuned else "default")


def threads_of(threads: int | None, *, tuned: bool = True) -> int:
    """Return --threads; else, for what is not ``tuned``, OMP_NUM_THREADS without one processor for others."""
    variable = "" if tuned else os.environ.get(THREADS, "")
    count = int(variable) if variable.isdecimal() else 1
    return threads or max(min(count, processors.count() - 1), 1)


def add_devices(command: argparse.ArgumentParser) -> None:
    """Add the options of training on several devices."""
    command.add_argument(
        "--devices",
        type=parse_count,
        metavar="N",
        help="train on N devices, each with its threads; default: %(default)s",
    )
    command.add_argument(
        "--scaling",
        choices=SCALINGS,
        help="weak: each device gets a whole batch; strong: the devices divide one; default: %(default)s",
    )


def add_parallel(command: argparse.ArgumentParser) -> None:
    """Add the option that says how many passes are measured at the same time."""
    command.add_argument(
        "--parallel",
        type=parse_count,
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
        metavar="TYPE",
        help="a device type of the nodes, such as H100 or the name of a processor; may be repeated; default: any",
    )


def add_trial_options(command: argparse.ArgumentParser) -> None:
    """Add the options of a trial that the user seldom needs."""
    add_parallel(command)
    command.add_argument(
        "--seed",
        type=parse_seed,
        metavar="N",
        help="seed of the random order of launches; default: %(default)s",
    )
    add_worker_timeout(command)


def add_worker_timeout(command: argparse.ArgumentParser) -> None:
    """Add the option that says when a worker hangs."""
    command.add_argument(
        "--worker-timeout",
        type=parse_timeout,
        metavar="SECONDS",
        help="stop a worker that sends nothing for SECONDS; default: %(default)g",
    )


def add_model_options(command: argparse.ArgumentParser) -> None:
    """Add the options that name a model of the user, and what both arms need for it."""
    group = command.add_argument_group("a model of your own")
    group.add_argument(
        "--model",
        dest="spec",
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
    group.add_argument("--pretrained", metavar="FILE", help="its weights, a safetensors file; default: seeded")
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
        help="an extra of the lock files and of --with-project; may be repeated",
    )
    group.add_argument("--python", metavar="VERSION", help="the Python of both arms, such as 3.11")
    group.add_argument("--allow-vcs", action="store_true", help="accept requirements such as NAME @ git+URL")


def add_program_options(command: argparse.ArgumentParser) -> None:
    """Add the options of a program of the user; ``__main__`` takes the words after -- from the command line."""
    about = "in place of a model: -- pytest tests, -- python train.py, or any other command, after all options"
    group = command.add_argument_group("code of your own", about)
    group.add_argument(
        "--function",
        metavar="SPEC",
        help="a function: package.module:name or path/file.py:name; arguments: see --input",
    )
    group.add_argument("--asv", metavar="FOLDER", help="a folder of asv benchmarks")
    group.add_argument("--report", metavar="FILE", help="a JSON file that the command writes: compare its numbers")
    group.add_argument(
        "--better",
        metavar="DIRECTION=NAME[,NAME...]",
        action="append",
        help="judge numbers that the command reports: higher=tokens_per_second, or lower=loss",
    )
    group.add_argument(
        "--accept",
        choices=("rounding",),
        help="rounding: let tests fail in NEW whose values moved by no more than OLD differs from itself",
    )
    group.add_argument("--only-outcomes", action="store_true", help="compare what it does and computes; time nothing")


def parse_inputs(text: str) -> tuple[Input, ...]:
    try:
        return inputs.parse(text)
    except SteleError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def names_lock_file(arm: str) -> bool:
    """Return whether OLD or NEW is a lock file. This may ask git."""
    return lockfiles.is_lockfile(str(revisions.split(arm)[0]))


def add_cell_options(command: argparse.ArgumentParser) -> None:
    """Add the options that select cells."""
    command.add_argument("--task", metavar="ID[,ID...]", help="default: %(default)s")
    command.add_argument("--phase", choices=PHASES, help="default: both")


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
    if match is None or not 0 < float(match[1]) < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration above 0. Write it as 90s, 20m or 1.5h")
    return float(match[1]) * UNITS[match[2]]


def format_duration(seconds: float) -> str:
    """Return the duration as ``parse_duration`` reads it: ``90s``, ``20m`` or ``1h``."""
    unit = next(unit for unit in reversed(UNITS) if seconds % UNITS[unit] == 0)
    return f"{seconds / UNITS[unit]:g}{unit}"


def parse_count(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def parse_seed(text: str) -> int:
    if not (text.isdecimal() and int(text) in SEEDS):
        raise argparse.ArgumentTypeError(f"{text!r} is not a seed. Write a whole number from 0 to {SEEDS[-1]}")
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


def require_real_data(task: str, scale: str) -> None:
    """Raise SteleError if the data of a task is synthetic, except at scale smoke."""
    fields, _ = measure.inputs(task)
    if fields["data_origin"].origin == "synthetic" and scale != "smoke":
        raise SteleError(
            f"The scale '{scale}' of '{task}' needs real data. Set STELE_DATA to a folder that has it, "
            "or choose the scale smoke."
        )
