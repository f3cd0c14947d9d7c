"""``stele tricks``: add the tricks of a task one after the other; what does each bring?"""

import argparse
from pathlib import Path
from typing import Any

from stele.commands import options, time_to_accuracy
from stele.commands.time_to_accuracy import FIRST, why_unreachable
from stele.environments import Environment
from stele.errors import SteleError
from stele.report import page
from stele.report import tricks as pages
from stele.report.time_to_accuracy import seed_line
from stele.time_to_accuracy import ablation, seeds
from stele.time_to_accuracy.ablation import Effect
from stele.time_to_accuracy.seeds import Training
from stele.time_to_accuracy.summary import Summary, summarise
from stele_worker import tasks

EPILOG = "Exit: 0 measured; 2 usage or environment; 130 interrupted. The same command then continues."
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
    """Print the table of each framework after it is measured. Returns 0."""
    training = time_to_accuracy.training_from(arguments)
    if not tasks.tricks(arguments.task, arguments.scale):
        raise SteleError(f"Task '{arguments.task}' has no tricks at scale {arguments.scale}.")
    target = time_to_accuracy.target_of(arguments)
    if arguments.plot is not None:
        pages.load_matplotlib()  # now, because hours may pass until it is needed
    selected = time_to_accuracy.select(arguments.framework, training)
    effects = {one.name: measure_tricks(one, training, target) for one in selected}
    if arguments.write is not None:
        page.fill(arguments.write, pages.markdown(effects), by=PART)
    if arguments.plot is not None:
        pages.draw(effects, arguments.plot)
    for environment in selected:  # last, so that a failed write does not train again
        finish(environment, training, effects[environment.name])
    return 0


def measure_tricks(environment: Environment, training: Training, target: float) -> list[Effect]:
    """Measure all steps in one framework and print their table."""
    wanted = ablation.all_trainings(environment, training)

    def measure(environment: Environment, one: Training) -> Summary:
        names = "+".join(one.tricks or ()) or tasks.BASELINE
        title = f"training {wanted.index(one) + 1} of {len(wanted)}: {names}, {one.epochs} epochs"
        runs = []
        for run in seeds.train(environment, one):
            runs.append(run)
            print(f"{title}: {seed_line(run, target)}", flush=True)
            if len(runs) == FIRST and (reason := why_unreachable(runs, target)):
                options.say(f"stele: {reason}")  # the accuracies are still wanted
        return summarise(runs, target)

    effects = list(ablation.measure_steps(environment, training, measure))
    print("", environment.name, *pages.lines(effects), sep="\n", flush=True)
    return effects


def finish(environment: Environment, training: Training, effects: list[Effect]) -> None:
    """Let the next command train again."""
    for effect in effects:
        for one in ablation.trainings(effect.step, training).values():
            seeds.finish(environment, one)
