"""A stack of dense layers in Chainer: define-by-run; F.forget computes segments again."""

from functools import partial

import chainer
import chainer.functions as F
import chainer.links as L

from stele_worker.frameworks.chainer import (
    inference,
    make_training_step,
    on_device,
    outputs,
    parameters,
    recomputed,
)
from stele_worker.tasks.stack import layer, segments

LAYOUT = None


class Layer(L.Linear):
    def forward(self, x):
        return F.relu(super().forward(x))  # (batch, width)


def apply_all(layers, x):
    for one in layers:
        x = one(x)
    return x


class Stack(chainer.Chain):
    def __init__(self, task):
        super().__init__()
        self.segments, self.recomputes = segments(task), task.segment is not None
        stacks = [[Layer(task.width, task.width) for _ in range(task.depth)] for _ in range(task.branches)]
        with self.init_scope():
            self.branch = chainer.ChainList(*[chainer.ChainList(*stack) for stack in stacks])

    def compute(self, branch, x):
        for numbers in self.segments:
            part = partial(apply_all, [branch[number] for number in numbers])
            x = recomputed(part, x) if self.recomputes else part(x)
        return x

    def forward(self, x):
        outputs = [self.compute(branch, x) for branch in self.branch]
        return F.add(*outputs) if len(outputs) > 1 else outputs[0]


def network(task):
    return Stack(task)


def load(net, weights):
    for name, parameter in parameters(net).items():
        parameter.array[...] = weights[name]
    return on_device(net)


def predict(net, x):
    return net(x)


def loss(net, x, y):
    return F.mean_squared_error(net(x), y)


def training_step(net, task):
    # Chainer has the learning rate inside the velocity, which is equivalent at a constant rate
    optimiser = chainer.optimizers.MomentumSGD(lr=task.learning_rate, momentum=task.momentum)
    optimiser.setup(net)
    return make_training_step(net, optimiser, loss)


def stored(net):
    return {name: parameter.array for name, parameter in parameters(net).items()}


def neutral(name, array):
    return array  # Chainer has the Task's layouts


def activations(net, task):
    names = [layer(branch, number) for branch in range(task.branches) for number in range(task.depth)]
    return outputs(net, names, inference(net, predict))
