"""A chain of operations in Paddle 1: imperative training, then Paddle Inference."""

import paddle.fluid as fluid
from paddle.fluid.layers import mean, square_error_cost

from stele_worker.frameworks.paddle1.recipe import Paddle1Recipe, as_variable, momentum


class Chain(fluid.dygraph.Layer):
    def __init__(self, task):
        super().__init__()
        self.links = task.links
        self.factor = self.create_parameter([task.width])
        self.summand = self.create_parameter([task.width])

    def forward(self, x):
        factor, summand = as_variable(self.factor), as_variable(self.summand)
        for _ in range(self.links):
            x = x * factor + summand  # (batch, width)
        return x


class Recipe(Paddle1Recipe):
    MKLDNN = False

    def network(self, task):
        return Chain(task)

    def loss(self, task, output, y):
        return mean(square_error_cost(output, y))

    def optimiser(self, net, task):
        return momentum(net, task)
