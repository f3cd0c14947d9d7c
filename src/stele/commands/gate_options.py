"""The options that say which OLD and NEW are compared and how, and the Trial that they describe."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from stele.commands import options
from stele.commands.options import parse_names
from stele.errors import SteleError
from stele.gate import thresholds
from stele.gate.metrics import ALL, LOADER, METRICS, MORE, Metric
from stele.gate.trial import Cell, Trial
from stele.measuring import processors
from stele.measuring.run import PHASES
from stele.measuring.settings import DEVICES, Settings
from stele.models import arms
from stele.models.spec import Model
from stele.text import unknown_message
from stele_worker import tasks

THRESHOLDS = {
    "tolerance": "growth that is accepted even if it is certain",
    "margin": "growth that has to be ruled out before a metric passes, at least the tolerance",
}
CORRECTNESS = ("parity", "accuracy")
# about fifty steps a launch, the same with a small batch, or all
SCALES = ("gate", "study", "quick", "paper")
UNTIMED = ("smoke", "parity")  # have too few steps
DEFAULT = (*CORRECTNESS, *(metric.name for metric in METRICS))
SELECTED = tuple(metric.name for metric in MORE)  # judged only if they are named


def add_pair_options(command: argparse.ArgumentParser, *, nargs: str | None = None) -> None:
    """Add what says which pair is compared and how. ``nargs`` is "?" if OLD and NEW may be left out."""
    environment = "a requirement such as keras==3.14.1, an environment, or an interpreter"
    command.add_argument("old", metavar="OLD", nargs=nargs, help=f"what is in use: {environment}")
    command.add_argument("new", metavar="NEW", nargs=nargs, help=f"what is judged: {environment}")
    options.add_cell_options(command)
    options.add_model_options(command)
    command.add_argument(
        "--metric", metavar="ID[,ID...]", help=f"default: {','.join(DEFAULT)}; also {','.join(SELECTED)}"
    )
    options.add_budget(command, "30m")
    options.add_process_options(command)
    for option, meaning in THRESHOLDS.items():
        defaults = ", ".join(f"{metric.name}={getattr(metric, option):.0%}%" for metric in ALL)
        command.add_argument(
            f"--{option}",
            action="append",
            default=[],
            metavar="[METRIC=]N%",
            help=f"{meaning}; METRIC is step if it is left out; default: {defaults}",
        )
    command.add_argument(
        "--fail-fast", action="store_true", help="end at the first certain verdict against NEW"
    )
    command.add_argument("--device", choices=DEVICES, default="cpu", help="default: %(default)s")
    options.add_precision(command)
    add_scale(command, "scale of the timed launches")
    command.add_argument(
        "--accuracy-scale",
        default="quick",
        metavar="SCALE",
        help="scale of the trainings for accuracy and time-to-target; default: %(default)s",
    )
    command.add_argument(
        "--target",
        type=options.parse_accuracy,
        metavar="ACCURACY",
        help="target of the metric time-to-target, such as 94%%; default: that of the task",
    )
    options.add_trial_options(command)
    command.add_argument("--json", type=Path, metavar="FILE", help="write a report as JSON")
    command.add_argument("--markdown", type=Path, metavar="FILE", help="write a report as Markdown")
    command.add_argument("--junit", type=Path, metavar="FILE", help="write a report as JUnit XML")


def add_scale(command: argparse.ArgumentParser, meaning: str) -> None:
    """Add --scale, which ``require_scale`` checks: a task may have scales of its own."""
    names = f"{', '.join(SCALES)}, or one that the task has, such as depth-64 of stack"
    command.add_argument("--scale", default="gate", help=f"{meaning}: {names}; default: %(default)s")


def trial_from(arguments: argparse.Namespace) -> Trial:
    """Return the Trial that the command line describes. Raises SteleError, which quotes what cannot be done."""
    model, extras = options.parse_model(arguments), options.parse_extras(arguments)
    names, settings, cells = check(arguments, model)
    contents = getattr(arguments, "contents", (None, None))  # what --changed found
    old, new = (
        arms.load(text, model, extras, locked=locked)
        for text, locked in zip((arguments.old, arguments.new), contents, strict=True)
    )
    return Trial(
        old=old,
        new=new,
        model=model,
        typed=getattr(arguments, "typed", ()),
        cells=cells,
        metrics=selected_metrics(arguments, names),
        settings=settings,
        seed=arguments.seed,
        budget=arguments.budget,
        parity="parity" in names,
        accuracy="accuracy" in names,
        scale=arguments.scale,
        training=arguments.accuracy_scale,
        target=arguments.target,
        timeout=arguments.worker_timeout,
        fail_fast=arguments.fail_fast,
        at_once=arguments.at_once,
    )


def check(arguments: argparse.Namespace, model: Model | None) -> tuple[list[str], Settings, tuple[Cell, ...]]:
    """Return the metrics, the settings and the cells. Raises SteleError for options that do not fit each other."""
    names = parse_names("metric", arguments.metric or ",".join(DEFAULT), (*DEFAULT, *SELECTED))
    settings = settings_from(arguments)
    phase = training_phase(arguments) if settings.devices > 1 else arguments.phase
    cells = (
        options.parse_cells(arguments.task, phase) if model is None else options.phases_of(model.name, phase)
    )
    require_phase(arguments, names)
    require_scale(arguments.scale, cells)
    require_loaders(names, cells)
    require_trainings(arguments, names, cells)
    selected_metrics(arguments, names)
    return names, settings, cells


def require_cells(subject: Trial) -> None:
    """Raise SteleError, with the reason, if neither OLD nor NEW has any of the cells."""
    absent = [subject.absences(cell) for cell in subject.cells]
    if all(None not in reasons for reasons in absent):
        raise SteleError(f"Neither OLD nor NEW can measure {subject.cells[0]}: {absent[0][0]}.")


def settings_from(arguments: argparse.Namespace) -> Settings:
    """Return the settings of all launches. Raises SteleError if they need more processors than there are."""
    names = ("device", "malloc", "devices", "scaling")
    settings = Settings(
        **{name: getattr(arguments, name) for name in names}, **options.conditions_from(arguments)
    )
    # a node of a cluster has other processors, and checks them itself
    if getattr(arguments, "address", None) is None:
        check_processors(settings)
    return settings


def check_processors(settings: Settings) -> None:
    """Raise SteleError if the launches leave no processor for other processes, or share processors."""
    present = processors.count()
    most = max(present - 1, 1)
    if settings.devices == 1 and settings.threads > most:
        raise SteleError(
            f"--threads {settings.threads} leaves no processor of {present} for other processes. "
            f"Use --threads {most} or less."
        )
    settings.check_processors()


ONE_DEVICE = ("time-to-target", "overhead", "loader", "fed-step")  # metrics that several devices do not have


def training_phase(arguments: argparse.Namespace) -> str:
    """Return the only phase that can use several devices. Raises SteleError if something else was selected."""
    if arguments.model is not None:
        raise SteleError("A model of the user is measured on one device. Leave out --devices or --model.")
    for metric in ONE_DEVICE:
        if metric in (arguments.metric or "").split(","):
            raise SteleError(
                f"--metric {metric} is measured on one device. Leave out --devices or the metric."
            )
    if arguments.phase == "infer":
        raise SteleError("Inference uses one device. Leave out --devices or --phase infer.")
    return "train"


WORDS = {"train": "training", "infer": "inference"}


def require_phase(arguments: argparse.Namespace, names: list[str]) -> None:
    """Raise SteleError if --phase excludes all metrics."""
    phases = {metric.name: metric.phases for metric in ALL} | {"accuracy": ("train",)}
    if arguments.phase and all(arguments.phase not in phases.get(name, PHASES) for name in names):
        [needed] = set(PHASES) - {arguments.phase}
        raise SteleError(
            f"--metric {arguments.metric} needs {WORDS[needed]}, but --phase {arguments.phase} excludes it. "
            f"Use --phase {needed}."
        )


def require_loaders(names: list[str], cells: Sequence[Cell]) -> None:
    """Raise SteleError if a metric of loaders is judged in a task without them."""
    for name in {metric.name for metric in ALL if metric.kinds == (LOADER,)} & set(names):
        for task in {cell.task for cell in cells} - set(tasks.LOADED):
            raise SteleError(
                f"--metric {name} needs a task with loaders, and '{task}' has none. Add --task cnn."
            )


def require_scale(scale: str, cells: Sequence[Cell]) -> None:
    """Raise SteleError if a task does not have the scale of the timed launches."""
    for task in {cell.task for cell in cells}:
        scales = tasks.load(task).SCALES if task in tasks.NAMES else SCALES
        known = [name for name in scales if name not in UNTIMED]
        if scale not in known:
            raise SteleError(unknown_message(f"scale of {task}", scale, known))


def require_trainings(arguments: argparse.Namespace, names: list[str], cells: Sequence[Cell]) -> None:
    """Raise SteleError if a task lacks the scale of the trainings, or a target that is judged."""
    scale, timed = arguments.accuracy_scale, "time-to-target" in names
    if arguments.model is not None and timed:
        raise SteleError("--metric time-to-target needs a built-in task. Leave it out, or leave out --model.")
    for task in {cell.task for cell in cells if cell.phase == "train"}:
        scales = tasks.load(task).SCALES if task in tasks.NAMES else tasks.SCALES
        if scale not in scales:
            raise SteleError(unknown_message(f"scale of {task}", scale, scales))
        if timed and not tasks.make(task, scale).data:
            raise SteleError(f"--metric time-to-target needs a data set, but '{task}' generates its samples.")
        if timed and (arguments.target or tasks.target(task, scale)) is None:
            raise SteleError(f"Task '{task}' has no target at scale {scale}. Add --target 60%.")
        if timed:
            options.require_real_data(task, scale)


def selected_metrics(arguments: argparse.Namespace, names: list[str]) -> tuple[Metric, ...]:
    """Return the metrics to judge, with their thresholds. A CPU has no device memory."""
    if arguments.device == "cpu":
        if arguments.metric and "device-memory" in names:
            raise SteleError(
                "--metric device-memory needs a device with a memory of its own. Add --device cuda."
            )
        names = [name for name in names if name != "device-memory"]
    tolerances = thresholds.parse("--tolerance", arguments.tolerance)
    margins = thresholds.parse("--margin", arguments.margin)
    return tuple(metric for metric in thresholds.apply(tolerances, margins) if metric.name in names)
