"""A stack of dense layers in Keras 3: remat of segments; Keras' documented loop, compiled where that is faster."""

import keras
from keras import layers, ops

from stele_suite.tasks import stack
from stele_worker.frameworks.keras.recipe import KerasRecipe, plain, set_policy


class Segment(layers.Layer):
    """Some layers, whose outputs a training step computes again in its backward pass."""

    def __init__(self, parts, **options):
        super().__init__(**options)
        self.parts = parts
        # PyTorch ends a recomputation with an exception. A filtered one would hold the recomputed arrays
        keras.config.disable_traceback_filtering()

    def build(self, shape):
        for part in self.parts:
            part.build(shape)

    def call(self, x, training=False):
        def run(x):
            for part in self.parts:
                x = part(x)
            return x

        return keras.remat(run)(x) if training else run(x)


def branch(task, number, x):
    for numbers in stack.segments(task):
        names = [plain(stack.layer(number, one)) for one in numbers]
        parts = [layers.Dense(task.width, activation="relu", name=name) for name in names]
        for part in parts if task.segment is None else [Segment(parts)]:
            x = part(x)  # (batch, width)
    return x


class Recipe(KerasRecipe):
    def network(self, task):
        set_policy(task)
        x = keras.Input((task.width,))
        branches = [branch(task, number, x) for number in range(task.branches)]
        total = branches[0] if task.branches == 1 else layers.Add()(branches)
        return keras.Model(x, layers.Activation("linear", dtype="float32")(total))

    def loss(self, task, output, y):
        return ops.mean(ops.square(output - y))

    def optimiser(self, net, task):
        return keras.optimizers.SGD(task.learning_rate, momentum=task.momentum)

    def layout(self, name, array):
        return array.T  # (in, out)
