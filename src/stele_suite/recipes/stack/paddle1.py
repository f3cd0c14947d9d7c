"""A stack of dense layers in Paddle 1: imperative training, or a Program with recomputation; Paddle Inference."""

import paddle.fluid as fluid
from paddle.fluid.dygraph import LayerList, Linear
from paddle.fluid.layers import mean, relu, square_error_cost, sums

from stele_suite.tasks.stack import layer, segments
from stele_worker.frameworks.paddle1.recipe import Paddle1Recipe, momentum, recomputing


class Dense(Linear):
    def forward(self, x):
        return relu(super().forward(x))  # (batch, width)


class Stack(fluid.dygraph.Layer):
    def __init__(self, task):
        super().__init__()
        self.segments, self.kept = segments(task), []  # the inputs of the segments, in a Program
        stacks = [[Dense(task.width, task.width) for _ in range(task.depth)] for _ in range(task.branches)]
        self.branch = LayerList([LayerList(stack) for stack in stacks])

    def compute(self, branch, x):
        for numbers in self.segments:
            self.kept.append(x)
            for number in numbers:
                x = branch[number](x)
        return x

    def forward(self, x):
        self.kept.clear()
        return sums([self.compute(branch, x) for branch in self.branch])


class Recipe(Paddle1Recipe):
    def network(self, task):
        return Stack(task)

    def layers(self, task):
        return [layer(branch, number) for branch in range(task.branches) for number in range(task.depth)]

    def loss(self, task, output, y):
        return mean(square_error_cost(output, y))

    def optimiser(self, net, task):
        return recomputing(momentum(net, task), net.kept) if task.segment else momentum(net, task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 else array  # dense: (in, out)
