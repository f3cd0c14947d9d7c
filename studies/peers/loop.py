"""Makes steps of public code, with which ``peers`` compares the recipes, in the interpreter of a framework.

    loop.py PEER TASK PHASE THREADS

makes a step for every line that it reads, and prints its duration in seconds. ``public/<peer>.py`` has a function for
each task that returns a network and its optimizer, in the style of the named source, rewritten from its description;
training_step(net, optimizer) returns step(*inputs, y), and inference_step(net) returns step(*inputs). The weights are
those of the framework's own initialisation: the mathematics and the sizes are equal, the numbers are not.
"""

import importlib
import itertools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
sys.path.insert(0, str(Path(__file__).parents[2] / "checks"))

import numpy
from answering import answer, configure

from stele_suite import tasks

# the framework of a peer that has another name
FRAMEWORK = {"torchvision": "torch", "transformers": "torch", "flax": "jax", "mxnet": "mxnet_gluon"}
CHANNELS_FIRST = ("torch", "torchvision", "paddle", "chainer", "mxnet")
COUNT = 8  # batches


def batches(task, channels_first):
    """Return batches of seeded noise in the form of the task: the inputs in order, then the target."""
    arrays = noise(task, numpy.random.RandomState(0))
    if channels_first and arrays[0].ndim == 4:
        arrays = (arrays[0].transpose(0, 3, 1, 2).copy(), *arrays[1:])
    return list(zip(*(array.reshape(COUNT, task.batch, *array.shape[1:]) for array in arrays)))  # noqa: B905


def noise(task, rng):
    """Return arrays of noise for all batches. The tasks with data have no noise of their own."""
    samples = COUNT * task.batch
    if task.name == "cnn":
        images = rng.uniform(-1, 1, (samples, 32, 32, 3)).astype(numpy.float32)
        return images, rng.randint(0, 10, samples).astype(numpy.int32)
    if task.name == "gru":
        tokens = rng.randint(0, task.vocabulary, (samples, task.length)).astype(numpy.int32)
        return tokens, rng.randint(0, 2, samples).astype(numpy.int32)
    return tasks.load(task.name).example(task, samples)


def make_step(public, task, phase):
    """Return the step of a phase."""
    net, optimizer = getattr(public, task.name)(task)
    return public.training_step(net, optimizer) if phase == "train" else public.inference_step(net)


def main(peer, name, phase, threads):
    framework = configure(FRAMEWORK.get(peer, peer), threads)
    task = tasks.make(name, "gate")
    step = make_step(importlib.import_module("public." + peer), task, phase)
    put = (lambda array: array) if peer == "keras" else framework.put
    rows = [tuple(map(put, batch)) for batch in batches(task, peer in CHANNELS_FIRST)]
    answer(framework, step, itertools.cycle(rows if phase == "train" else [row[:-1] for row in rows]))


if __name__ == "__main__":
    main(*sys.argv[1:])
