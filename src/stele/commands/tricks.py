"""``stele tricks``: add the tricks of a task one after the other; what does each bring?"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stele.commands import options, time_to_accuracy
from stele.commands.time_to_accuracy import FIRST, why_unreachable
from stele.environments import Environment
from stele.errors import SteleError
from stele.measuring.run import Run
from stele.measuring.worker import WorkerError
from stele.report import page
from stele.report import tricks as pages
from stele.report.time_to_accuracy import seed_line
from stele.time_to_accuracy import ablation, seeds
from stele.time_to_accuracy.ablation import Effect
from stele.time_to_accuracy.seeds import Training
from stele.time_to_accuracy.summary import Summary, summarise
from stele_worker import tasks

EPILOG = (
    "Exit: 0 measured; 2 usage or environment, or a training that failed; 130 interrupted. The same command then "
    "continues."
)
PART = "stele, tricks"  # of the page; "stele time-to-accuracy" writes another part


def add(commands: Any) -> None:
    summary = "what does each trick of a task bring in time and accuracy?"
    command = commands.add_parser("tricks", help=summary, description=summary, epilog=EPILOG)
    command.add_argument("--framework", metavar="ID[,ID...]", default="torch", help="default: %(default)s")
    time_to_accuracy.add_training_options(command)
    command.add_argument(
        "--write", type=Path, metavar="FILE", help="write the tables between the markers of the page FILE"
    )
    command.add_argument("--plot", type=Path, metavar="FILE", help="draw time against accuracy, as SVG")
    command.set_defaults(command=tricks)


def tricks(arguments: argparse.Namespace) -> int:
    """Print the table of each framework, all after the last training. Returns the exit code, as in EPILOG."""
    training = time_to_accuracy.training_from(arguments)
    if not tasks.tricks(arguments.task, arguments.scale):
        raise SteleError(f"Task '{arguments.task}' has no tricks at scale {arguments.scale}.")
    target = time_to_accuracy.target_of(arguments)
    if arguments.plot is not None:
        pages.load_matplotlib()  # now, because hours may pass until it is needed
    selected = time_to_accuracy.select(arguments.framework, training)
    measured = measure_in_turns(selected, training, target)
    ended = [environment for environment in selected if environment.name in measured]
    report(arguments, {one.name: ablation.effects(one, training, measured[one.name]) for one in ended})
    for environment in ended:  # last, so that a failed write does not train again
        for one in measured[environment.name]:
            seeds.finish(environment, one)
    return 0 if len(ended) == len(selected) else 2


def measure_in_turns(
    selected: Sequence[Environment], training: Training, target: float
) -> dict[str, dict[Training, Summary]]:
    """Return the Summary of each training by environment, without the environments in which one failed."""
    measured: dict[str, dict[Training, list[Run]]] = {
        one.name: {each: [] for each in ablation.all_trainings(one, training)} for one in selected
    }
    waiting = {(one.name, each): seeds.train(one, each) for one in selected for each in measured[one.name]}
    for (name, one), run in seeds.in_turns(waiting):
        if isinstance(run, WorkerError):  # the other environments go on
            options.say(f"stele: {run}")
            for failed in measured.pop(name):
                waiting.pop((name, failed), None)
            continue
        measured[name][one].append(run)
        show(one, measured[name], target)
    return {
        name: {one: summarise(runs, target) for one, runs in of_environment.items()}
        for name, of_environment in measured.items()
    }


def show(training: Training, measured: Mapping[Training, Sequence[Run]], target: float) -> None:
    """Print the last of the Runs of a training, and after the first seeds whether the target is out of reach."""
    runs, names = measured[training], "+".join(training.tricks or ()) or tasks.BASELINE
    number = list(measured).index(training) + 1
    title = f"training {number} of {len(measured)}: {names}, {training.epochs} epochs"
    print(f"{title}: {seed_line(runs[-1], target)}", flush=True)
    if len(runs) == FIRST and (reason := why_unreachable(runs, target)):
        options.say(f"stele: {reason}")  # the accuracies are still wanted


def report(arguments: argparse.Namespace, effects: Mapping[str, list[Effect]]) -> None:
    """Print the table of each environment, and write what was asked for."""
    for name, of_environment in effects.items():
        print("", name, *pages.lines(of_environment), sep="\n", flush=True)
    if effects and arguments.write is not None:
        page.fill(arguments.write, pages.markdown(effects), by=PART)
    if effects and arguments.plot is not None:
        pages.draw(effects, arguments.plot)
