"""A stack of dense layers in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

import numpy

from stele_worker.oracle import load_weights, sgd, zero_parameters
from stele_worker.tasks import stack

LAYOUT = None


def network(task):
    shapes = {name: array.shape for name, array in stack.weights(task).items()}
    return zero_parameters(shapes)


def load(net, weights):
    return load_weights(net, weights)


def forward(net, task, x):
    """Return the values of each branch: its input and the output of each layer, (batch, width)."""
    branches = []
    for branch in range(task.branches):
        values = [x.astype(numpy.float64)]
        for number in range(task.depth):
            name = stack.layer(branch, number)
            values.append(numpy.maximum(values[-1] @ net[name + ".weight"].T + net[name + ".bias"], 0))
        branches.append(values)
    return branches


def gradients(net, task):
    def run(x, y):
        branches = forward(net, task, x)
        error = sum(values[-1] for values in branches) - y
        d = {}
        for branch, values in enumerate(branches):
            g = 2 * error / error.size
            for number in reversed(range(task.depth)):
                name = stack.layer(branch, number)
                g = g * (values[number + 1] > 0)
                d[name + ".weight"], d[name + ".bias"] = g.T @ values[number], g.sum(0)
                g = g @ net[name + ".weight"]
        return (error**2).mean(), d

    return run


def training_step(net, task):
    run = gradients(net, task)
    update = sgd(net, learning_rate=task.learning_rate, momentum=task.momentum)

    def step(x, y):
        loss, d = run(x, y)
        update(d)
        return loss

    return step


def inference_step(net, task):
    return lambda x: sum(values[-1] for values in forward(net, task, x))


def stored(net):
    return net


def neutral(name, array):
    return array


def activations(net, task):
    def run(x):
        branches = forward(net, task, x)
        return {
            stack.layer(branch, number): values[number + 1]
            for branch, values in enumerate(branches)
            for number in range(task.depth)
        }

    return run
