"""A stack of dense layers in Paddle 1: imperative training, or a Program with recomputation; Paddle Inference."""

import paddle.fluid as fluid
from paddle.fluid.dygraph import LayerList, Linear
from paddle.fluid.layers import mean, relu, square_error_cost, sums

from stele_worker.frameworks.paddle1 import make_training_step, outputs, recomputing
from stele_worker.tasks.stack import layer, segments

LAYOUT = None


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


def network(task):
    return Stack(task)


def load(net, weights):
    for name, parameter in net.named_parameters():
        parameter.set_value(weights[name].T)
    return net


def loss(net, task):
    return lambda x, y: mean(square_error_cost(net(x), y))


def training_step(net, task):
    optimiser = fluid.optimizer.MomentumOptimizer(
        task.learning_rate, task.momentum, parameter_list=net.parameters(), use_nesterov=False
    )
    if task.segment:
        optimiser = recomputing(optimiser, net.kept)
    return make_training_step(net, optimiser, loss(net, task))


def stored(net):
    return dict(net.named_parameters())


def neutral(name, array):
    return array.T


def activations(net, task):
    return outputs(
        net, [layer(branch, number) for branch in range(task.branches) for number in range(task.depth)]
    )
