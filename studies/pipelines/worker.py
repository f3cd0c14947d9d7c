"""Measures a loader alone, a training step alone, and both, in the interpreter of a framework.

worker.py FRAMEWORK REQUEST prints the seconds of a batch as JSON. The request is JSON: settings, task, samples, steps,
workers of the loader, and what the task's loader reads: images and labels (paths of .npy files), or a folder of image
files. The loader alone reads all samples; the training takes so many steps at most.
"""

import importlib
import itertools
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import numpy

from stele_suite import tasks
from stele_worker import frameworks, loaders, recipes


def main(name, request):
    framework = frameworks.load(name)
    framework.configure(request["settings"])
    task, recipe = tasks.make(request["task"], "gate"), recipes.load(request["task"], name)
    source = SOURCES[task.name]
    net = recipe.load(recipe.network(task), tasks.weights(task))
    step = recipe.training_step(net, task)

    def train(batches):
        return loaders.time_batches(batches, lambda one: framework.wait(step(*one)))[0]

    loader_seconds, last = loaders.time_batches(source(name, task, request), framework.wait)
    steps = min(request["steps"], request["samples"] // task.batch)
    # all that a loader reads is used: Paddle's cannot be stopped while it reads
    few = dict(request, samples=steps * task.batch)
    step_seconds = train(itertools.repeat(last, steps))
    return {"loader": loader_seconds, "step": step_seconds, "both": train(source(name, task, few))}


def in_memory(name, task, request):
    images, labels = (
        numpy.array(numpy.load(request[part], mmap_mode="r")[: request["samples"]]) for part in ("images", "labels")
    )
    return loaders.find(name).batches(images, labels, task.batch, request["workers"])


def image_files(name, task, request):
    paths = sorted(map(str, Path(request["folder"]).iterdir()))[: request["samples"]]
    labels = numpy.random.RandomState(0).randint(0, 2, (len(paths), task.labels)).astype(numpy.float32)
    files = importlib.import_module("loaders." + name)
    return files.file_batches(paths, labels, task.image, task.batch, request["workers"])


SOURCES = {"cnn": in_memory, "densenet121": image_files}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], json.loads(sys.argv[2]))))
