"""``stele time-to-accuracy``: train a task from several seeds until a fixed epoch; how long until a target accuracy?"""

import argparse
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from stele import convergence, environments, files
from stele.commands import options
from stele.commands.options import say
from stele.environments import Environment
from stele.errors import SteleError
from stele.measuring import machine, processors
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
from stele_worker import tasks
from stele_worker.protocol import TIME_TO_ACCURACY

FOLDER = Path(".stele/time-to-accuracy")
SEEDS = 10  # as in MLPerf
FIRST = 3  # seeds after which a target that is out of reach is reported
UNREACHABLE = 0.01  # probability that a run reaches the target
EPILOG = (
    "Exit: 0 measured; 1 a training converges faster than the reference, so its mathematics changed; 2 usage or "
    "environment, or a target that the epochs cannot reach; 3 no training reached the target; 130 interrupted."
)


def add(commands: Any) -> None:
    summary = "how long does a training take until a target accuracy?"
    command = commands.add_parser("time-to-accuracy", help=summary, description=summary, epilog=EPILOG)
    command.add_argument("--framework", metavar="ID[,ID...]", default="torch", help="default: %(default)s")
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
        default=CLOSED,
        help="who draws initial weights, crops and flips: in the closed one the task, the same for every framework; in "
        "the open one the framework; default: %(default)s",
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON")
    command.add_argument("--markdown", type=Path, metavar="FILE", help="write the table as Markdown")
    command.add_argument(
        "--write", type=Path, metavar="FILE", help="write the table between the markers of the page FILE"
    )
    command.add_argument(
        "--dawnbench", type=Path, metavar="FOLDER", help="write DAWNBench's TSV and JSON files"
    )
    command.add_argument("--mlperf", type=Path, metavar="FOLDER", help="write MLPerf's log files")
    command.set_defaults(command=time_to_accuracy)


def add_training_options(command: argparse.ArgumentParser) -> None:
    """Add the options that ``stele tricks`` has, too."""
    command.add_argument("--task", metavar="ID", default="cifar-fast", help="default: %(default)s")
    command.add_argument("--scale", help="a scale of the task; default: gpu on a GPU, cpu elsewhere")
    command.add_argument(
        "--target",
        type=options.parse_accuracy,
        metavar="ACCURACY",
        help="such as 94%%; default: that of the task",
    )
    command.add_argument(
        "--seeds", type=options.parse_count, default=SEEDS, metavar="N", help="default: %(default)s"
    )
    command.add_argument("--device", choices=DEVICES, default="cpu", help="default: %(default)s")
    command.add_argument("--precision", choices=PRECISIONS, default="fp32", help="default: %(default)s")
    command.add_argument(
        "--threads",
        type=options.parse_count,
        default=processors.count(),
        metavar="N",
        help="default: all processors",
    )
    command.add_argument(
        "--no-wait",
        action="store_true",
        help="exit if another measurement runs on this machine, instead of waiting for it",
    )
    command.add_argument(
        "--worker-timeout",
        type=options.parse_timeout,
        default=TIMEOUT,
        metavar="SECONDS",
        help="longest silence of a worker; default: %(default)s",
    )


def time_to_accuracy(arguments: argparse.Namespace) -> int:
    """Print a line for each seed, then the table. Returns the exit code, as in EPILOG."""
    training = training_from(arguments, epochs=arguments.epochs, division=arguments.division)
    target, price = target_of(arguments), price_of(arguments)
    if arguments.mlperf is not None:
        mlperf.load_package()  # now, because hours may pass until it is needed
    selected = select(arguments.framework, training)
    measured = measure_in_turns(selected, training, target)
    summaries = [summary_of(runs, training, target, price) for runs in measured.values()]
    if summaries:
        print("", *pages.lines(summaries), sep="\n")
        write(arguments, summaries)
    for environment in selected:  # last, so that a failed write does not train again
        if environment.name in measured:
            seeds.finish(environment, training)
    return exit_code(summaries) if len(summaries) == len(selected) else 2


def training_from(arguments: argparse.Namespace, **changes: Any) -> Training:
    """Return the Training of the command line. Raises SteleError for a task or a scale that cannot be trained."""
    if arguments.scale is None:
        arguments.scale = "gpu" if arguments.device == "cuda" else "cpu"
    require_trainable(arguments.task, arguments.scale)
    settings = Settings(
        device=arguments.device, precision=arguments.precision, threads=arguments.threads, malloc="steady"
    )
    return Training(
        arguments.task,
        arguments.scale,
        settings,
        arguments.seeds,
        FOLDER,
        timeout=arguments.worker_timeout,
        **changes,
    )


def require_trainable(task: str, scale: str) -> None:
    """Raise SteleError unless the task has this scale, a data set, and its real data."""
    if task not in tasks.NAMES:
        raise SteleError(unknown_message("task", task, tasks.NAMES))
    scales = tasks.load(task).SCALES
    if scale not in scales:
        raise SteleError(unknown_message(f"scale of {task}", scale, scales))
    if tasks.make(task, scale).data is None:
        raise SteleError(
            f"Task '{task}' generates its samples, so it has no target accuracy. Choose a task with data."
        )
    options.announce_inputs([task])
    options.require_real_data(task, scale)


def target_of(arguments: argparse.Namespace) -> float:
    """Return the target of the command line, or that of the task at its scale."""
    target: float | None = arguments.target or tasks.target(arguments.task, arguments.scale)
    if target is None:
        raise SteleError(
            f"Task '{arguments.task}' has no target at scale {arguments.scale}. Add --target 60%."
        )
    return target


def price_of(arguments: argparse.Namespace) -> prices.Price | None:
    """Return the price of the machine, and warn if it is old. None if it is unknown."""
    price = prices.find(arguments.price, machine.facts(), arguments.device)
    warning = None if price is None else prices.warning(price, date.today())
    if warning:
        say(f"stele: {warning}")
    return price


def select(names: str, training: Training) -> list[Environment]:
    """Return the environments ID[,ID...], each ready. Raises SteleError if one lacks the task."""
    selected = environments.load_ready(dict.fromkeys(name for name in names.split(",") if name))
    where: dict[str, Any] = {"device": training.settings.device, "precision": training.settings.precision}
    for environment in selected:
        reason = environment.why_absent(training.task, TIME_TO_ACCURACY, **where)
        if reason is None and training.division != CLOSED:
            reason = tasks.why_closed(training.task, environment.framework)
        if reason:
            raise SteleError(f"'{environment.name}' cannot train '{training.task}': {reason}")
    return selected


def measure_in_turns(
    selected: Sequence[Environment], training: Training, target: float
) -> dict[str, list[Run]]:
    """Return the Runs by environment, without those that failed, or whose first seeds cannot reach the target."""
    measured: dict[str, list[Run]] = {one.name: [] for one in selected}
    waiting = {one.name: seeds.train(one, training) for one in selected}
    for name, run in seeds.in_turns(waiting):
        if isinstance(run, WorkerError):  # the others go on
            say(f"stele: {run}")
            del measured[name]
            continue
        measured[name].append(run)
        print(pages.seed_line(run, target), flush=True)
        if len(measured[name]) == FIRST and (reason := why_unreachable(measured[name], target)):
            say(f"stele: {reason} Lower --target, or raise --epochs.")
            del waiting[name], measured[name]
    return measured


def summary_of(runs: Sequence[Run], training: Training, target: float, price: prices.Price | None) -> Summary:
    reference = None if training.changes else accuracy.reference_accuracies(runs[0])
    return summarise(runs, target, price=price, reference=reference)


def why_unreachable(runs: Sequence[Run], target: float) -> str | None:
    """Return, with the probability, that the epochs are too few for the target, if the first seeds show it."""
    accuracies = [run.accuracy for run in runs if run.accuracy is not None]
    p = convergence.reach_p(accuracies, target)
    if p is None or p >= UNREACHABLE:
        return None
    average = convergence.mean(accuracies).middle
    return (
        f"{runs[0].environment} cannot reach {target:.1%} in {len(runs[0].seconds)} epochs: after {len(runs)} seeds, "
        f"the mean accuracy is {average:.2%}, and a run reaches the target with a probability of {p:.2g}."
    )


def write(arguments: argparse.Namespace, summaries: Sequence[Summary]) -> None:
    """Write the reports that were asked for. A page may have a part for each task and scale."""
    if arguments.json:
        files.write_output_text(arguments.json, pages.to_json(summaries))
    if arguments.markdown:
        files.write_output_text(arguments.markdown, pages.markdown(summaries) + "\n")
    if arguments.write:
        part = f"{page.BY}, {arguments.task} {arguments.scale}"
        by = part if page.has_part(arguments.write, part) else page.BY
        page.fill(arguments.write, pages.markdown(summaries), by=by)
    for folder in filter(None, (arguments.dawnbench, arguments.mlperf)):
        folder.mkdir(exist_ok=True)
    for summary in summaries:
        if arguments.dawnbench:
            dawnbench.write(arguments.dawnbench, list(summary.runs), summary.price)
        if arguments.mlperf:
            mlperf.write(arguments.mlperf, list(summary.runs), summary.target)


def exit_code(summaries: Sequence[Summary]) -> int:
    if any(summary.rejected for summary in summaries):
        return 1
    return 0 if all(summary.probability.middle for summary in summaries) else 3
