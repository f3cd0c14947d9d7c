"""One process that trains a recipe and its authors' code from each seed, in turns; see __main__.py.

Each side compiles once; the first training of each, which compiles, does not count.
"""

import json
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy
import ours
from steps import AUTHORS

from stele import files, statistics
from stele.measuring import measure
from studies import launches


class Training(NamedTuple):
    """Seconds of each epoch, seconds of the last evaluation, and the accuracy after it."""

    epochs: list
    evaluation: float
    accuracy: float

    def seconds(self):
        return sum(self.epochs) + self.evaluation


def main():
    arguments = SimpleNamespace(**json.loads(sys.argv[1]))
    measured = {"recipe": [], "author": []}
    with tempfile.TemporaryDirectory() as arguments.scratch:
        paths = measure.inputs(arguments.task)[0]["data"]
        author = AUTHORS[arguments.task].make_training(Path(arguments.folder), arguments, paths)
        try:
            train_in_turns({"recipe": ours.make_training(arguments, paths), "author": author}, measured, arguments)
        finally:  # also if it is interrupted
            show(measured)


def train_in_turns(sides, measured, arguments):
    """Add a Training of each seed to each side, without the first training of each."""
    for seed in range(-1, arguments.seeds):
        for name, train in sorted(sides.items(), reverse=seed % 2 == 0):
            training = Training(*train(max(seed, 0)))
            where = f"seed {seed + 1} of {arguments.seeds}" if seed >= 0 else "first, not counted"
            print(f"{name} {where}: {describe(training)}", flush=True)
            if seed >= 0:
                measured[name].append(training)
            if arguments.json:
                held = {side: [one._asdict() for one in trainings] for side, trainings in measured.items()}
                files.write_text(Path(arguments.json), json.dumps(held, indent=1) + "\n")


def describe(training):
    epoch = numpy.median(training.epochs)
    return (
        f"{training.accuracy:.2%}, {training.seconds():.3f} s: epochs {epoch:.4f} s each, "
        f"evaluation {training.evaluation:.4f} s"
    )


def show(measured):
    """Print mean accuracies, and ratios with 95 % intervals, over the seeds that both sides have."""
    pairs = list(zip(measured["recipe"], measured["author"], strict=False))
    for name, trainings in zip(measured, zip(*pairs, strict=True), strict=False):
        accuracies = numpy.array([one.accuracy for one in trainings])
        spread = f" ± {1.96 * accuracies.std(ddof=1) / len(pairs) ** 0.5:.2%}" if len(pairs) > 1 else ""
        print(f"{name}: mean accuracy {accuracies.mean():.2%}{spread}, {len(pairs)} seeds")
    for title, value in pairs and (
        ("all epochs and one evaluation", lambda one: one.seconds()),
        ("the median epoch", lambda one: numpy.median(one.epochs)),
        ("the evaluation", lambda one: one.evaluation),
    ):
        ratios = [value(recipe) / value(author) for recipe, author in pairs]
        print(f"{title}, recipe / author: {launches.interval(statistics.median(ratios))}")


if __name__ == "__main__":
    main()
