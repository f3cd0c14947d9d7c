"""A chain of operations in Chainer: define-by-run."""

import chainer
import chainer.functions as F

from stele_worker.frameworks.chainer.recipe import ChainerRecipe, sgd


class Chain(chainer.Chain):
    def __init__(self, task):
        super().__init__()
        self.count = task.links  # Chainer's method has the name "links"
        with self.init_scope():
            self.factor = chainer.Parameter(0.0, (task.width,))
            self.summand = chainer.Parameter(0.0, (task.width,))

    def forward(self, x):
        for _ in range(self.count):
            x = x * self.factor + self.summand  # (batch, width)
        return x


class Recipe(ChainerRecipe):
    def network(self, task):
        return Chain(task)

    def loss(self, task, output, y):
        return F.mean_squared_error(output, y)

    def optimiser(self, net, task):
        return sgd(net, task)
