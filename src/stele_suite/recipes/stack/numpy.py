"""A stack of dense layers in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

import numpy

from stele_suite.oracle import dense, mean_squared_error, relu, sgd
from stele_suite.tasks import stack
from stele_worker.frameworks.numpy.recipe import NumpyRecipe


class Recipe(NumpyRecipe):
    def forward(self, net, task, x, random=None):
        branches = [self.branch(net, task, branch, x.astype(numpy.float64)) for branch in range(task.branches)]

        def backward(g, d):
            for _, branch_backward in branches:
                branch_backward(g, d)

        return sum(value for value, _ in branches), backward

    def branch(self, net, task, branch, x):
        tape = []
        for number in range(task.depth):
            name = stack.layer(branch, number)
            x, dense_backward = dense(x, net[name + ".weight"], net[name + ".bias"])  # (batch, width)
            x, activate = relu(x)
            self.record(name, x)
            tape.append((name, dense_backward, activate))

        def backward(g, d):
            for name, dense_backward, activate in reversed(tape):
                g, d[name + ".weight"], d[name + ".bias"] = dense_backward(activate(g))

        return x, backward

    def loss(self, task, output, y):
        return mean_squared_error(output, y)

    def optimiser(self, net, task):
        return sgd(net, learning_rate=task.learning_rate, momentum=task.momentum)
