"""A hand-written loop over one recipe, with which ``harness.py`` compares the suite's step time.

    bare.py FRAMEWORK TASK PHASE THREADS TRAIN_X.npy TRAIN_Y.npy

makes a step for every line that it reads, and prints its duration in seconds. It uses the recipes and tasks, so that
both sides compute the same. It pins itself to as many processors as there are threads, as a worker does (JAX with one
thread would use a second processor). It uses no clock, protocol, worker or host code of the suite.
"""

import itertools
import sys

import numpy
from answering import answer, configure

from stele_suite import tasks
from stele_worker import recipes


def main(name: str, task_name: str, phase: str, threads: str, x_file: str, y_file: str) -> None:
    framework, recipe, module = configure(name, threads), recipes.load(task_name, name), tasks.load(task_name)
    task = tasks.make(task_name, "quick")
    inputs, labels = numpy.load(x_file), numpy.load(y_file)
    rows = tasks.subset(task.train, len(labels))
    x, y = framework.put(module.inputs(inputs[rows])), framework.put(labels[rows])
    net = recipe.load(recipe.network(task), module.weights(task))
    step = recipe.training_step(net, task) if phase == "train" else recipe.inference_step(net, task)
    arrays = (x, y) if phase == "train" else (x,)
    order = itertools.cycle(tasks.batch_order(task, 0))
    answer(framework, step, (tuple(framework.take(array, rows) for array in arrays) for rows in order))


if __name__ == "__main__":
    main(*sys.argv[1:])
