"""A chain of operations in Chainer: define-by-run."""

import chainer
import chainer.functions as F

from stele_worker.frameworks.chainer import load, make_training_step, neutral, sgd, stored

__all__ = ["LAYOUT", "load", "neutral", "stored"]

LAYOUT = None


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


def network(task):
    return Chain(task)


def predict(net, x):
    return net(x)


def loss(net, x, y):
    return F.mean_squared_error(net(x), y)


def training_step(net, task):
    return make_training_step(net, sgd(net, task), loss)
