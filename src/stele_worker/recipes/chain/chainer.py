"""A chain of operations in Chainer: define-by-run."""

import chainer
import chainer.functions as F

from stele_worker.frameworks.chainer import make_training_step, on_device, parameters

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
    return array
