"""A chain of operations in Paddle 1: imperative training, then Paddle Inference."""

import paddle.fluid as fluid
from paddle.fluid.layers import mean, square_error_cost

from stele_worker.frameworks.paddle1 import as_variable, make_training_step

LAYOUT = None
MKLDNN = False


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


def network(task):
    return Chain(task)


def load(net, weights):
    for name, parameter in net.named_parameters():
        parameter.set_value(weights[name])
    return net


def loss(net, task):
    return lambda x, y: mean(square_error_cost(net(x), y))


def training_step(net, task):
    optimiser = fluid.optimizer.MomentumOptimizer(
        task.learning_rate, task.momentum, parameter_list=net.parameters(), use_nesterov=False
    )
    return make_training_step(net, optimiser, loss(net, task))


def stored(net):
    return dict(net.named_parameters())


def neutral(name, array):
    return array
