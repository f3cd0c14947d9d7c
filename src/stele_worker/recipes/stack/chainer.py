"""A stack of dense layers in Chainer: define-by-run; F.forget computes segments again."""

from functools import partial

import chainer
import chainer.functions as F
import chainer.links as L

from stele_worker.frameworks.chainer import (
    inference,
    load,
    make_training_step,
    neutral,
    outputs,
    recomputed,
    sgd,
    stored,
)
from stele_worker.tasks.stack import layer, segments

__all__ = ["LAYOUT", "load", "neutral", "stored"]

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
        values = [self.compute(branch, x) for branch in self.branch]
        return F.add(*values) if len(values) > 1 else values[0]


def network(task):
    return Stack(task)


def predict(net, x):
    return net(x)


def loss(net, x, y):
    return F.mean_squared_error(net(x), y)


def training_step(net, task):
    return make_training_step(net, sgd(net, task), loss)


def activations(net, task):
    names = [layer(branch, number) for branch in range(task.branches) for number in range(task.depth)]
    return outputs(net, names, inference(net, predict))
