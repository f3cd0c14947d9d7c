"""``stele time-to-accuracy``: train a task from several seeds until a fixed epoch; how long until a target accuracy?"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from stele import convergence, environments, files
from stele.commands import options
from stele.environments import Environment
from stele.errors import SteleError
from stele.measuring import machine, measure, processors
from stele.measuring.progress import say
from stele.measuring.run import CLOSED, DIVISIONS, Run
from stele.measuring.settings import DEVICES, PRECISIONS, Settings
from stele.measuring.worker import TIMEOUT, WorkerError
from stele.parity import accuracy
from stele.report import dawnbench, mlperf, page
from stele.report import time_to_accuracy as pages
from stele.text import unknown_message
from stele.time_to_accuracy import prices, seeds
from stele.time_to_accuracy.seeds import Training
from stele.time_to_accuracy.summary import Summary, summarise
from stele_suite import tasks
from stele_worker.protocol import TIME_TO_ACCURACY

FOLDER = Path(".stele/time-to-accuracy")
SEEDS = 10  # as in MLPerf
FIRST = 3  # seeds after which a target that is out of reach is reported
UNREACHABLE = 0.01  # probability that a run reaches the target
EPILOG = (
    "Exit: 0 measured; 1 a training converges faster than the reference, so its mathematics changed; 2 usage or "
    "environment, or a target that the epochs cannot reach; 3 no training reached the target; 4 internal error; 130 "
    "interrupted."
)


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """What is trained, and how; ``stele tricks`` has these options, too."""

    framework: str = "torch"
    task: str = "cifar-fast"
    scale: str | None = None
    target: float | None = None
    seeds: int = SEEDS
    device: str = "cpu"
    precision: str = "fp32"
    threads: int = field(default_factory=processors.count)
    worker_timeout: float = TIMEOUT

    @property
    def known_scale(self) -> str:
        """The scale; without --scale, that of the device."""
        return self.scale or ("gpu" if self.device == "cuda" else "cpu")


@dataclass(frozen=True, kw_only=True)
class TimeToAccuracyOptions:
    training: TrainingOptions = field(default_factory=TrainingOptions)
    price: str | None = None
    epochs: int | None = None
    division: str = CLOSED
    json: Path | None = None
    markdown: Path | None = None
    write: Path | None = None
    dawnbench: Path | None = None
    mlperf: Path | None = None


def add(commands: Any) -> None:
    summary = "measure how long training takes to reach a target accuracy"
    command = commands.add_parser("time-to-accuracy", help=summary, description=summary, epilog=EPILOG)
    add_training_options(command)
    command.add_argument(
        "--price",
        metavar="NAME_OR_USD",
        help="price per hour, from the table or as a number; default: by the GPU",
    )
    command.add_argument(
        "--epochs", type=options.parse_count, metavar="N", help="default: those of the task at its scale"
    )
    command.add_argument(
        "--division",
        choices=DIVISIONS,
        help="who draws initial weights, crops and flips: in the closed one the task, the same for every framework; in "
        "the open one the framework; default: %(default)s",
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON")
    command.add_argument("--markdown", type=Path, metavar="FILE", help="write the table as Markdown")
    command.add_argument(
        "--write", type=Path, metavar="FILE", help="write the table between the markers of the page FILE"
    )
    command.add_argument("--dawnbench", type=Path, metavar="FOLDER", help="write DAWNBench's TSV and JSON files")
    command.add_argument("--mlperf", type=Path, metavar="FOLDER", help="write MLPerf's log files")
    options.declare(command, time_to_accuracy, TimeToAccuracyOptions, check=check)


def add_training_options(command: argparse.ArgumentParser) -> None:
    """Add the options of TrainingOptions, and the one that says not to wait for the machine."""
    command.add_argument("--framework", metavar="ID[,ID...]", help="default: %(default)s")
    command.add_argument("--task", metavar="ID", help="default: %(default)s")
    command.add_argument("--scale", help="a scale of the task; default: gpu on a GPU, cpu elsewhere")
    command.add_argument(
        "--target",
        type=options.parse_accuracy,
        metavar="ACCURACY",
        help="such as 94%%; default: that of the task",
    )
    command.add_argument("--seeds", type=options.parse_count, metavar="N", help="default: %(default)s")
    command.add_argument("--device", choices=DEVICES, help="default: %(default)s")
    command.add_argument("--precision", choices=PRECISIONS, help="default: %(default)s")
    command.add_argument(
        "--threads",
        type=options.parse_count,
        metavar="N",
        help="default: all processors",
    )
    command.add_argument(
        "--no-wait",
        action="store_true",
        help="exit if another measurement runs on this machine, instead of waiting for it",
    )
    options.add_worker_timeout(command)


def check(chosen: TimeToAccuracyOptions) -> None:
    """Raise SteleError for what cannot be done, as far as the command line says it."""
    if chosen.price is not None:
        prices.find(chosen.price, machine.facts(), chosen.training.device)
    check_training(chosen.training)


def check_training(chosen: TrainingOptions) -> None:
    """Raise SteleError for a framework, a task, a scale or a device that there is not. No data are read."""
    for name in filter(None, chosen.framework.split(",")):
        environments.load(name)
    require_scale(chosen.task, chosen.scale, chosen.known_scale)
    target_of(chosen)
    Settings(device=chosen.device, precision=chosen.precision, threads=chosen.threads).check_machine()


def time_to_accuracy(chosen: TimeToAccuracyOptions) -> int:
    """Print a line for each seed, then the table. Returns the exit code, as in EPILOG."""
    training = training_from(chosen.training, epochs=chosen.epochs, division=chosen.division)
    target, price = target_of(chosen.training), price_of(chosen.price, chosen.training.device)
    if chosen.mlperf is not None:
        mlperf.load_package()  # now, because hours may pass until it is needed
    selected = select(chosen.training.framework, training)
    runs_of = measure_in_turns(selected, training, target)
    summaries = [summary_of(runs, training, target, price) for runs in runs_of.values()]
    if summaries:
        print("", *pages.lines(summaries), sep="\n")
        write(chosen, summaries)
    for environment in selected:  # last, so that a failed write does not train again
        if environment.name in runs_of:
            seeds.finish(environment, training)
    return exit_code(summaries) if len(summaries) == len(selected) else 2


def training_from(chosen: TrainingOptions, **changes: Any) -> Training:
    """Return the Training of the command line. Raises SteleError for a task or a scale that cannot be trained."""
    require_trainable(chosen.task, chosen.known_scale)
    settings = Settings(device=chosen.device, precision=chosen.precision, threads=chosen.threads, malloc="steady")
    return Training(
        chosen.task,
        chosen.known_scale,
        settings,
        chosen.seeds,
        FOLDER,
        timeout=chosen.worker_timeout,
        **changes,
    )


def require_trainable(task: str, scale: str) -> None:
    """Raise SteleError unless the task has this scale, a data set, and its real data."""
    require_scale(task, scale, scale)
    measure.announce_inputs([task])
    options.require_real_data(task, scale)


def require_scale(task: str, typed: str | None, scale: str) -> None:
    """Raise SteleError unless the task has this scale, which may be that of the device, and a data set."""
    if task not in tasks.NAMES:
        raise SteleError(unknown_message("task", task, tasks.NAMES))
    scales = tasks.load(task).SCALES
    if scale not in scales and typed is None:
        raise SteleError(
            f"Task '{task}' has no scale '{scale}', the default. Add --scale with one of: {', '.join(scales)}."
        )
    if scale not in scales:
        raise SteleError(unknown_message("scale", scale, scales, of=f"for task {task}"))
    if tasks.make(task, scale).data is None:
        raise SteleError(
            f"Task '{task}' generates its samples, so its accuracy has no meaning. Choose one with data, such as cnn."
        )


def target_of(chosen: TrainingOptions) -> float:
    """Return the target of the command line, or that of the task at its scale."""
    target: float | None = chosen.target or tasks.target(chosen.task, chosen.known_scale)
    if target is None:
        raise SteleError(f"Task '{chosen.task}' has no target at scale {chosen.known_scale}. Add --target 60%.")
    return target


def price_of(text: str | None, device: str) -> prices.Price | None:
    """Return the price of the machine, and warn if it is old. None if it is unknown."""
    price = prices.find(text, machine.facts(), device)
    warning = None if price is None else prices.warning(price, date.today())
    if warning:
        say(f"stele: {warning}")
    return price


def select(names: str, training: Training) -> list[Environment]:
    """Return the environments ID[,ID...], each ready. Raises SteleError if one lacks the task."""
    selected = environments.load_ready(dict.fromkeys(name for name in names.split(",") if name))
    settings = training.settings
    for environment in selected:
        reason = environment.why_absent(
            training.task, TIME_TO_ACCURACY, device=settings.device, precision=settings.precision
        )
        if reason is None and training.division != CLOSED:
            reason = tasks.why_closed(training.task, environment.framework)
        if reason:
            raise SteleError(f"'{environment.name}' cannot train '{training.task}': {reason}")
    return selected


def measure_in_turns(selected: Sequence[Environment], training: Training, target: float) -> dict[str, list[Run]]:
    """Return the Runs by environment, without those that failed, or whose first seeds cannot reach the target."""
    runs_of: dict[str, list[Run]] = {environment.name: [] for environment in selected}
    waiting = {environment.name: seeds.train(environment, training) for environment in selected}
    for name, run in seeds.in_turns(waiting):
        if isinstance(run, WorkerError):  # the others go on
            say(f"stele: {run}")
            del runs_of[name]
            continue
        runs_of[name].append(run)
        print(pages.seed_line(run, target), flush=True)
        if len(runs_of[name]) == FIRST and (reason := why_unreachable(runs_of[name], target)):
            say(f"stele: {reason} Lower --target, or raise --epochs.")
            del waiting[name], runs_of[name]
    return runs_of


def summary_of(runs: Sequence[Run], training: Training, target: float, price: prices.Price | None) -> Summary:
    reference = None if training.options.changes else accuracy.reference_accuracies(runs[0])
    return summarise(runs, target, price=price, reference=reference)


def why_unreachable(runs: Sequence[Run], target: float) -> str | None:
    """Return, with the probability, that the epochs are too few for the target, if the first seeds show it."""
    accuracies = [run.learning.accuracy for run in runs if run.learning.accuracy is not None]
    p = convergence.reach_p(accuracies, target)
    if p is None or p >= UNREACHABLE:
        return None
    average = convergence.mean(accuracies).middle
    return (
        f"{runs[0].environment} cannot reach {target:.1%} in {len(runs[0].steps.seconds)} epochs: after {len(runs)} "
        f"seeds, the mean accuracy is {average:.2%}, and a run reaches the target with a probability of {p:.2g}."
    )


def write(chosen: TimeToAccuracyOptions, summaries: Sequence[Summary]) -> None:
    """Write the reports that were asked for. A page may have a part for each task and scale."""
    if chosen.json:
        files.write_output_text(chosen.json, pages.to_json(summaries))
    if chosen.markdown:
        files.write_output_text(chosen.markdown, pages.markdown(summaries) + "\n")
    if chosen.write:
        part = f"{page.BY}, {chosen.training.task} {chosen.training.known_scale}"
        by = part if page.has_part(chosen.write, part) else page.BY
        page.fill(chosen.write, pages.markdown(summaries), by=by)
    for folder in filter(None, (chosen.dawnbench, chosen.mlperf)):
        folder.mkdir(exist_ok=True)
    for summary in summaries:
        if chosen.dawnbench:
            dawnbench.write(chosen.dawnbench, list(summary.runs), summary.price)
        if chosen.mlperf:
            mlperf.write(chosen.mlperf, list(summary.runs), summary.target)


def exit_code(summaries: Sequence[Summary]) -> int:
    if any(summary.rejected for summary in summaries):
        return 1
    return 0 if all(summary.probability.middle for summary in summaries) else 3
