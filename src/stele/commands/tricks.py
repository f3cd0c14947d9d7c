"""``stele tricks``: add the tricks of a task one after the other; what does each bring?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stele.commands import options, time_to_accuracy
from stele.commands.time_to_accuracy import FIRST, TrainingOptions, why_unreachable
from stele.environments import Environment
from stele.errors import SteleError
from stele.measuring.progress import say
from stele.measuring.run import Run
from stele.measuring.worker import WorkerError
from stele.report import charts, page
from stele.report import tricks as pages
from stele.report.time_to_accuracy import seed_line
from stele.time_to_accuracy import ablation, seeds
from stele.time_to_accuracy.ablation import Effect
from stele.time_to_accuracy.seeds import Training
from stele.time_to_accuracy.summary import Summary, summarise
from stele_suite import tasks

EPILOG = (
    "Exit: 0 measured; 2 usage or environment, or a training that failed; 4 internal error; 130 interrupted. "
    "The same command then continues."
)
PART = "stele, tricks"  # of the page; "stele time-to-accuracy" writes another part


@dataclass(frozen=True, kw_only=True)
class TricksOptions:
    training: TrainingOptions = field(default_factory=TrainingOptions)
    write: Path | None = None
    plot: Path | None = None


def add(commands: Any) -> None:
    summary = "measure what each trick of a task changes in time and accuracy"
    command = commands.add_parser("tricks", help=summary, description=summary, epilog=EPILOG)
    time_to_accuracy.add_training_options(command)
    command.add_argument(
        "--write", type=Path, metavar="FILE", help="write the tables between the markers of the page FILE"
    )
    command.add_argument("--plot", type=Path, metavar="FILE", help="draw time against accuracy, as SVG")
    options.declare(command, tricks, TricksOptions, check=check)


def check(chosen: TricksOptions) -> None:
    """Raise SteleError for what cannot be done, as far as the command line says it."""
    training = chosen.training
    if training.task in tasks.NAMES and not any(
        tasks.tricks(training.task, scale) for scale in tasks.load(training.task).SCALES
    ):
        raise SteleError(f"Task '{training.task}' has no tricks. Choose another one, such as cifar-fast.")
    time_to_accuracy.check_training(training)


def tricks(chosen: TricksOptions) -> int:
    """Print the table of each framework, all after the last training. Returns the exit code, as in EPILOG."""
    training = time_to_accuracy.training_from(chosen.training)
    if not tasks.tricks(training.task, training.scale):
        raise SteleError(f"Task '{training.task}' has no tricks at scale {training.scale}.")
    target = time_to_accuracy.target_of(chosen.training)
    if chosen.plot is not None:
        charts.load_converter()  # now, because hours may pass until it is needed
    selected = time_to_accuracy.select(chosen.training.framework, training)
    results = measure_in_turns(selected, training, target)
    ended = [environment for environment in selected if environment.name in results]
    report(
        chosen,
        {environment.name: ablation.effects(environment, training, results[environment.name]) for environment in ended},
    )
    for environment in ended:  # last, so that a failed write does not train again
        for trained in results[environment.name]:
            seeds.finish(environment, trained)
    return 0 if len(ended) == len(selected) else 2


def measure_in_turns(
    selected: Sequence[Environment], training: Training, target: float
) -> dict[str, dict[Training, Summary]]:
    """Return the Summary of each training by environment, without the environments in which one failed."""
    runs_of: dict[str, dict[Training, list[Run]]] = {
        environment.name: {each: [] for each in ablation.all_trainings(environment, training)}
        for environment in selected
    }
    waiting = {
        (environment.name, each): seeds.train(environment, each)
        for environment in selected
        for each in runs_of[environment.name]
    }
    for (name, current), run in seeds.in_turns(waiting):
        if isinstance(run, WorkerError):  # the other environments go on
            say(f"stele: {run}")
            for failed in runs_of.pop(name):
                waiting.pop((name, failed), None)
            continue
        runs_of[name][current].append(run)
        show(current, runs_of[name], target)
    return {
        name: {trained: summarise(runs, target) for trained, runs in of_environment.items()}
        for name, of_environment in runs_of.items()
    }


def show(training: Training, runs_of: Mapping[Training, Sequence[Run]], target: float) -> None:
    """Print the last of the Runs of a training, and after the first seeds whether the target is out of reach."""
    runs, names = runs_of[training], "+".join(training.tricks or ()) or tasks.BASELINE
    number = list(runs_of).index(training) + 1
    title = f"training {number} of {len(runs_of)}: {names}, {training.epochs} epochs"
    print(f"{title}: {seed_line(runs[-1], target)}", flush=True)
    if len(runs) == FIRST and (reason := why_unreachable(runs, target)):
        say(f"stele: {reason}")  # the accuracies are still wanted


def report(chosen: TricksOptions, effects: Mapping[str, list[Effect]]) -> None:
    """Print the table of each environment, and write what was asked for."""
    for name, of_environment in effects.items():
        print("", name, *pages.lines(of_environment), sep="\n", flush=True)
    if effects and chosen.write is not None:
        page.fill(chosen.write, pages.markdown(effects), by=PART)
    if effects and chosen.plot is not None:
        pages.draw(effects, chosen.plot)
