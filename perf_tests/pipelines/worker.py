"""Measures a loader alone, the training step of the CNN alone, and both, in the interpreter of a framework.

worker.py FRAMEWORK REQUEST prints the seconds of a batch as JSON. The request is JSON: settings, images and labels
(paths of .npy files), samples, and workers of the loader.
"""

import importlib
import itertools
import json
import sys
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import numpy

from stele_worker import frameworks, recipes, tasks

WARMUP = 5  # batches


def main(name, request):
    framework = frameworks.load(name)
    framework.configure(request["settings"])
    loader = importlib.import_module("loaders." + name)
    images, labels = (
        numpy.load(request[part], mmap_mode="r")[: request["samples"]] for part in ("images", "labels")
    )
    task, recipe = tasks.make("cnn", "gate"), recipes.load("cnn", name)
    net = recipe.load(recipe.network(task), tasks.weights(task))
    step = recipe.training_step(net, task)

    def load():
        return loader.batches(numpy.array(images), numpy.array(labels), task.batch, request["workers"])

    loader_seconds, last = seconds(load(), framework.wait)
    repeated = itertools.repeat(last, len(labels) // task.batch)
    return {
        "loader": loader_seconds,
        "step": seconds(repeated, lambda one: framework.wait(step(*one)))[0],
        "both": seconds(load(), lambda one: framework.wait(step(*one)))[0],
    }


def seconds(batches, use):
    """Return the mean seconds of a batch after the warm-up, in which a loader may be ahead, and the last batch."""
    for one in itertools.islice(batches, WARMUP):
        use(one)
    began, count = perf_counter(), 0
    for one in batches:
        use(one)
        count += 1
    return (perf_counter() - began) / count, one


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], json.loads(sys.argv[2]))))
