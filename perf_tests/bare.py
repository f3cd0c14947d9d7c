"""A hand-written loop over one recipe, with which ``harness.py`` compares the suite's step time.

    python perf_tests/bare.py FRAMEWORK TASK PHASE THREADS TRAIN_X.npy TRAIN_Y.npy

makes a step for every line that it reads, and prints its duration in seconds. It uses the recipes and tasks, so that
both sides compute the same. It pins itself to as many processors as there are threads, as a worker does (JAX with one
thread would use a second processor). It uses no clock, protocol, worker or host code of the suite.
"""

import itertools
import sys
from time import perf_counter

import numpy

from stele_worker import frameworks, modes, process, recipes, tasks


def main(name: str, task_name: str, phase: str, threads: str, x_file: str, y_file: str) -> None:
    process.limit_processors(int(threads))
    framework, recipe, module = frameworks.load(name), recipes.load(task_name, name), tasks.load(task_name)
    settings = {"device": "cpu", "precision": "fp32", "autotune": True, "deterministic": False, "seed": 0}
    framework.configure(modes.resolve(name, framework, {**settings, "threads": int(threads)}))
    task = tasks.make(task_name, "quick")
    inputs, labels = numpy.load(x_file), numpy.load(y_file)
    rows = tasks.subset(task.train, len(labels))
    x, y = framework.put(module.inputs(inputs[rows])), framework.put(labels[rows])
    net = recipe.load(recipe.network(task), module.weights(task))
    step = recipe.training_step(net, task) if phase == "train" else recipe.inference_step(net, task)
    for batch in itertools.cycle(tasks.batch_order(task, 0)):
        if not sys.stdin.readline():
            break
        arguments = [framework.take(array, batch) for array in ((x, y) if phase == "train" else (x,))]
        framework.wait(arguments)
        start = perf_counter()
        result = step(*arguments)
        framework.wait(result)
        print(perf_counter() - start, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
