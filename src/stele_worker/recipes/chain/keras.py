"""A chain of operations in Keras 3: one layer; Keras' documented loop, compiled where that is faster."""

import keras
from keras import layers, ops

from stele_worker.frameworks.keras import make_training_step, parameters, set_policy

LAYOUT = None


class Chain(layers.Layer):
    def __init__(self, links, **options):
        super().__init__(**options)
        self.links = links

    def build(self, shape):
        self.factor = self.add_weight(shape=(shape[-1],), name="factor")
        self.summand = self.add_weight(shape=(shape[-1],), name="summand")

    def call(self, x):
        factor, summand = ops.cast(self.factor, x.dtype), ops.cast(self.summand, x.dtype)
        for _ in range(self.links):
            x = x * factor + summand  # (batch, width)
        return x


def network(task):
    set_policy(task)
    x = keras.Input((task.width,))
    return keras.Model(x, layers.Activation("linear", dtype="float32")(Chain(task.links)(x)))


def load(net, weights):
    for variable in net.weights:
        variable.assign(weights[variable.name])
    return net


def named(variables, values):
    return dict(zip([variable.name for variable in variables], values))


def output(net):
    return net.outputs[0]  # of the inference


def loss(task):
    return lambda y, output: ops.mean(ops.square(output - y))


def training_step(net, task):
    optimiser = keras.optimizers.SGD(
        task.learning_rate, momentum=task.momentum, nesterov=False, weight_decay=None
    )
    return make_training_step(net, optimiser, loss(task))


def stored(net):
    return named(net.weights, parameters(net))


def neutral(name, array):
    return array
