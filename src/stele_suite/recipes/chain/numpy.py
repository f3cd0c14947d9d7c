"""A chain of operations in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

import numpy

from stele_suite.oracle import mean_squared_error, sgd
from stele_worker.frameworks.numpy.recipe import NumpyRecipe


class Recipe(NumpyRecipe):
    def forward(self, net, task, x, random=None):
        values = [x.astype(numpy.float64)]  # the input of each link and the output of the last, (batch, width)
        for number in range(1, task.links + 1):
            values.append(values[-1] * net["factor"] + net["summand"])
            if number < task.links:
                self.record("link.{}".format(number), values[-1])

        def backward(g, d):
            for value in reversed(values[:-1]):
                d.add(["factor", "summand"], [(g * value).sum(0), g.sum(0)])
                g = g * net["factor"]

        return values[-1], backward

    def loss(self, task, output, y):
        return mean_squared_error(output, y)

    def optimiser(self, net, task):
        return sgd(net, learning_rate=task.learning_rate, momentum=task.momentum)
