"""A chain of operations in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

import numpy

from stele_worker.oracle import load_weights, sgd, zero_parameters

LAYOUT = None


def network(task):
    return zero_parameters({"factor": (task.width,), "summand": (task.width,)})


def load(net, weights):
    return load_weights(net, weights)


def forward(net, task, x):
    """Return the input of each link and the output of the last: (batch, width) each."""
    values = [x.astype(numpy.float64)]
    for _ in range(task.links):
        values.append(values[-1] * net["factor"] + net["summand"])
    return values


def gradients(net, task):
    def run(x, y):
        values = forward(net, task, x)
        error = values[-1] - y
        g, d = 2 * error / error.size, zero_parameters({name: array.shape for name, array in net.items()})
        for value in reversed(values[:-1]):
            d["factor"] += (g * value).sum(0)
            d["summand"] += g.sum(0)
            g = g * net["factor"]
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
    return lambda x: forward(net, task, x)[-1]


def stored(net):
    return net


def neutral(name, array):
    return array


def activations(net, task):
    def run(x):
        values = forward(net, task, x)
        return {"link.{}".format(number): values[number] for number in range(1, task.links + 1)}

    return run
