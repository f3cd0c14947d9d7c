"""One process that runs steps of a recipe and of its authors' code in turns. Prints a line of JSON; see __main__.py.

Both sides start from the same weights and take the same batch of noise, in float32.
"""

import json
import sys
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace

import airbench
import fast
import numpy
import ours
import torch

from stele_suite import tasks
from stele_worker import recipes
from stele_worker.subjects import TaskSubject

AUTHORS = {"cifar-fast": fast, "cifar-airbench": airbench}
COMPARED = 3  # steps; at the learning rates of these tasks, rounding grows about tenfold in a step
UNTIMED = 2  # the first steps allocate


def main():
    arguments = SimpleNamespace(**json.loads(sys.argv[1]))
    print(json.dumps(compare(*sides(arguments), arguments.turns)))


def sides(arguments):
    """Return step() -> loss of the recipe and of the authors' code."""
    batch = arguments.batch
    support = ours.configure(arguments, "fp32", "eager")
    # so many images that the learning rate is that of the first steps of an epoch
    task = tasks.make(arguments.task, "cpu-full", batch=batch, train=100 * batch)
    subject = TaskSubject(task, recipes.load(task.name, "torch"))
    weights, arrays = subject.weights(), tasks.load(task.name).example(task, batch)
    author = AUTHORS[task.name]
    images = torch.from_numpy(arrays[0]).permute(0, 3, 1, 2).contiguous(memory_format=author.FORMAT)
    images, labels = images.to(arguments.device), torch.from_numpy(arrays[1]).long().to(arguments.device)
    theirs = author.make_step(Path(arguments.folder), task, weights, images, labels)
    return ours.make_step(subject, weights, arrays, support), theirs


def compare(recipe, author, turns):
    """Return the relative difference of the losses, the median ratio of the durations, and the median durations."""
    losses, seconds = {recipe: [], author: []}, {recipe: [], author: []}
    for number in range(turns + UNTIMED):
        for step in (recipe, author) if number % 2 else (author, recipe):
            began = perf_counter()
            losses[step].append(step())
            seconds[step].append(perf_counter() - began)
    first = [numpy.array(losses[step][:COMPARED]) for step in (recipe, author)]
    timed = [numpy.array(seconds[step][UNTIMED:]) for step in (recipe, author)]
    return {
        "losses": float(abs(first[0] / first[1] - 1).max()),
        "ratio": float(numpy.median(timed[0] / timed[1])),
        "recipe": float(numpy.median(timed[0])),
        "author": float(numpy.median(timed[1])),
    }


if __name__ == "__main__":
    main()
