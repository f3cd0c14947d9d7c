"""A stack of dense layers in Chainer: define-by-run; F.forget computes segments again."""

from functools import partial

import chainer
import chainer.functions as F
import chainer.links as L

from stele_suite.tasks.stack import layer, segments
from stele_worker.frameworks.chainer.recipe import ChainerRecipe, sgd


class Layer(L.Linear):
    def forward(self, x):
        return F.relu(super().forward(x))  # (batch, width)


def apply_all(layers, x):
    for each in layers:
        x = each(x)
    return x


class Stack(chainer.Chain):
    def __init__(self, task):
        super().__init__()
        self.segments, self.recomputes = segments(task), task.segment is not None
        stacks = [[Layer(task.width, task.width) for _ in range(task.depth)] for _ in range(task.branches)]
        with self.init_scope():
            self.branch = chainer.ChainList(*[chainer.ChainList(*stack) for stack in stacks])

    def computes_again(self):
        """Return whether the backward pass computes the segments again. A static graph refuses that."""
        return self.recomputes and chainer.config.train and chainer.config.schedule_func is None

    def compute(self, branch, x):
        for numbers in self.segments:
            part = partial(apply_all, [branch[number] for number in numbers])
            x = F.forget(part, x) if self.computes_again() else part(x)
        return x

    def forward(self, x):
        values = [self.compute(branch, x) for branch in self.branch]
        return F.add(*values) if len(values) > 1 else values[0]


class Recipe(ChainerRecipe):
    def network(self, task):
        return Stack(task)

    def layers(self, task):
        return [layer(branch, number) for branch in range(task.branches) for number in range(task.depth)]

    def loss(self, task, output, y):
        return F.mean_squared_error(output, y)

    def optimiser(self, net, task):
        return sgd(net, task)
