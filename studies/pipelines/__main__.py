"""How much of a loader's work runs at the same time as the training step?

    python -m studies pipelines [--task NAME] [--framework NAME] [--launches N] [--samples N]
    python -m studies pipelines --task densenet121 --images FOLDER

Measures images with augmentation through the loader of each framework: CIFAR-10 in memory with the task ``cnn``, and
image files with the task ``densenet121``. The loader alone, the training step alone, and both, in fresh processes that
take turns. Writes docs/results/pipelines.md. What was measured stays in .stele/pipelines.jsonl; an interrupted command
continues from there. The files are those of FOLDER, or images of CIFAR-10 that are enlarged.
"""

import argparse
import json
import subprocess
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import image_files

from stele import environments, temporary
from stele.environments import builds
from stele.errors import SteleError
from stele.measuring import lock, machine, measure, processors
from stele.measuring.settings import Settings
from stele.report import page
from studies import launches
from studies.ready import environments_with

PAGE, WORKER = Path(__file__).parents[2] / "docs/results/pipelines.md", Path(__file__).with_name("worker.py")
LOG, KEYS = Path(".stele/pipelines.jsonl"), ("pipeline", "seconds")  # of a line
SETTINGS = Settings(device="cpu", threads=1, malloc="steady")
LOADERS = {
    "cnn": {
        "torch": "torch.utils.data.DataLoader",
        "jax": "Grain",
        "tensorflow": "tf.data",
        "keras-jax": "tf.data with the layers of Keras",
        "keras-tensorflow": "tf.data with the layers of Keras",
        "keras-torch": "tf.data with the layers of Keras",
        "paddle": "paddle.io.DataLoader",
        "mxnet-gluon": "gluon.data.DataLoader",
        "chainer": "chainer.iterators.MultiprocessIterator",
    },
    "densenet121": {
        "torch": "torch.utils.data.DataLoader",
        "jax": "Grain",
        "tensorflow": "tf.data",
        "keras-jax": "keras.utils.image_dataset_from_directory",
        "keras-tensorflow": "keras.utils.image_dataset_from_directory",
        "keras-torch": "keras.utils.image_dataset_from_directory",
        "paddle": "paddle.io.DataLoader",
        "mxnet-gluon": "gluon.data.DataLoader",
        "chainer": "chainer.iterators.MultiprocessIterator",
    },
}
SAMPLES, STEPS = {"cnn": 12800, "densenet121": 960}, {"cnn": 60, "densenet121": 25}
NEGLIGIBLE = 0.05  # of a step: the overlap of a loader that needs less is only noise
TITLES = {"cnn": "CIFAR-10 in memory, and the CNN", "densenet121": "image files, and DenseNet-121"}
HEAD = ("framework", "loader", "loader alone, ms", "step alone, ms", "both, ms", "overlap")

Seconds = dict[str, float]  # of a batch: loader, step and both


class Pipeline(NamedTuple):
    task: str
    environment: str

    def __str__(self) -> str:
        return f"{self.task} {self.environment}"


def launch(pipeline: Pipeline, sources: dict[str, dict[str, Any]]) -> Seconds:
    """Return what one process measures. Raises SteleError, with its last line, if it fails."""
    environment = environments.load(pipeline.environment)
    request = {
        "settings": {**SETTINGS.as_request(tuned=True), "mode": environment.mode},
        "task": pipeline.task,
        "steps": STEPS[pipeline.task],
        "workers": processors.count(),
        **sources[pipeline.task],
    }
    command = [builds.command(environment)[0], str(WORKER), environment.framework, json.dumps(request)]
    variables = {**builds.variables(environment), **SETTINGS.variables()}
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    if done.returncode:
        raise SteleError(f"{environment.name}: {done.stderr.strip().splitlines()[-1]}")
    seconds: Seconds = json.loads(done.stdout.splitlines()[-1])
    return seconds


def find_sources(arguments: argparse.Namespace, folder: Path) -> dict[str, dict[str, Any]]:
    """Return what the worker of each task reads. Image files are written to the folder, unless the user has some."""
    images, labels = cifar10()
    counts = {task: arguments.samples or SAMPLES[task] for task in LOADERS}
    chosen = image_files.of_folder(arguments.images) if arguments.images else image_files.of_array(images)
    image_files.write(folder, chosen, counts["densenet121"])
    return {
        "cnn": {"images": images, "labels": labels, "samples": counts["cnn"]},
        "densenet121": {"folder": str(folder), "samples": counts["densenet121"]},
    }


def cifar10() -> tuple[str, str]:
    """Return the paths of the images and labels. Raises SteleError if they are not at hand."""
    fields, _ = measure.inputs("cnn")
    if fields["data"] is None:
        raise SteleError("CIFAR-10 is not at hand. Set STELE_DATA to a folder that has it.")
    return fields["data"]["train_x"], fields["data"]["train_y"]


def overlap(seconds: Seconds) -> float:
    """Return the share of the shorter part that runs at the same time as the longer one: 0 none, 1 all."""
    return (seconds["loader"] + seconds["step"] - seconds["both"]) / min(seconds["loader"], seconds["step"])


def row(pipeline: Pipeline, measured: list[Seconds]) -> list[str]:
    seconds = [median(one[part] for one in measured) for part in ("loader", "step", "both")]
    shares = sorted(map(overlap, measured))
    spread = f" [{shares[0]:.2f} {shares[-1]:.2f}]" if len(shares) > 1 else ""
    shown = f"{median(shares):.2f}{spread}"
    if seconds[0] < NEGLIGIBLE * seconds[1]:
        shown = f"loading needs less than {NEGLIGIBLE:.0%} of a step"
    times = [f"{1e3 * value:,.1f}" for value in seconds]
    return [pipeline.environment, LOADERS[pipeline.task][pipeline.environment], *times, shown]


def markdown(stored: dict[str, list[Seconds]]) -> str:
    """Return a table for each task that was measured."""
    parts = []
    for task, loaders in LOADERS.items():
        known = [one for name in loaders if str(one := Pipeline(task, name)) in stored]
        if known:
            table = page.table(HEAD, [row(one, stored[str(one)]) for one in known], right=slice(2, None))
            parts.append(f"**{TITLES[task]}**\n\n{table}")
    facts, count = machine.facts(), min(map(len, stored.values()), default=0)
    where = f"{facts.processor}, {facts.processors} processors"
    launched = f"at least {count} launch{'' if count == 1 else 'es'} of each"
    threads = f"One thread for the step, {processors.count()} workers for the loader."
    return "\n\n".join([*parts, f"Measured until {date.today()} on {where}, {launched}. {threads}"])


def selected(tasks: Iterable[str], names: list[str] | None) -> list[Pipeline]:
    return [
        Pipeline(task, environment.name)
        for task in tasks
        for environment in environments_with(task, "train", SETTINGS, list(LOADERS[task]))
        if not names or environment.name in names
    ]


def main() -> None:
    parser = launches.parser(__doc__, 3)
    names = dict.fromkeys(name for loaders in LOADERS.values() for name in loaders)
    parser.add_argument("--task", action="append", choices=LOADERS, help="default: both")
    parser.add_argument("--framework", action="append", choices=names, help="default: all that are ready")
    parser.add_argument("--samples", type=int, metavar="N", help=f"images; default: {SAMPLES}")
    parser.add_argument("--images", type=Path, metavar="FOLDER", help="image files for densenet121")
    arguments = parser.parse_args()
    chosen = selected(arguments.task or LOADERS, arguments.framework)
    with lock.machine("tox -e studies -- pipelines", wait=True, say=print), temporary.folder() as folder:
        sources = find_sources(arguments, folder)
        launches.measure(LOG, KEYS, chosen, arguments.launches, lambda one: launch(one, sources))
    page.fill(PAGE, markdown(launches.load(LOG, *KEYS)))


if __name__ == "__main__":
    main()
