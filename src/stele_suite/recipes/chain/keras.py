"""A chain of operations in Keras 3: one layer; Keras' documented loop, compiled where that is faster."""

import keras
from keras import layers, ops

from stele_worker.frameworks.keras.recipe import KerasRecipe, set_policy


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


class Recipe(KerasRecipe):
    def network(self, task):
        set_policy(task)
        x = keras.Input((task.width,))
        return keras.Model(x, layers.Activation("linear", dtype="float32")(Chain(task.links)(x)))

    def loss(self, task, output, y):
        return ops.mean(ops.square(output - y))

    def optimiser(self, net, task):
        return keras.optimizers.SGD(task.learning_rate, momentum=task.momentum)

    def name_of(self, variable):
        return variable.name
