"""A stack of dense layers in Keras 3: remat of segments; Keras' documented loop, compiled where that is faster."""

import keras
from keras import layers, ops

from stele_worker.frameworks.keras import make_training_step, parameters, set_policy
from stele_worker.tasks import stack

LAYOUT = None


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
        names = [stack.layer(number, one).replace(".", "-") for one in numbers]  # PyTorch accepts no dots
        parts = [layers.Dense(task.width, activation="relu", name=name) for name in names]
        for part in parts if task.segment is None else [Segment(parts)]:
            x = part(x)  # (batch, width)
    return x


def network(task):
    set_policy(task)
    x = keras.Input((task.width,))
    branches = [branch(task, number, x) for number in range(task.branches)]
    total = branches[0] if task.branches == 1 else layers.Add()(branches)
    return keras.Model(x, layers.Activation("linear", dtype="float32")(total))


def load(net, weights):
    for variable in net.weights:
        variable.assign(weights[name_of(variable)].T)
    return net


def name_of(variable):
    """Return the Task's name of a variable, whose path is such as ``segment/branch-0-1/kernel``."""
    *_, layer, kind = variable.path.split("/")
    return "{}.{}".format(layer.replace("-", "."), {"kernel": "weight"}.get(kind, kind))


def output(net):
    return net.outputs[0]  # of the inference


def loss(task):
    return lambda y, output: ops.mean(ops.square(output - y))


def training_step(net, task):
    optimiser = keras.optimizers.SGD(
        task.learning_rate, momentum=task.momentum, nesterov=False, weight_decay=None
    )
    return make_training_step(net, optimiser, loss(task))


def named(variables, values):
    return dict(zip(map(name_of, variables), values))


def stored(net):
    return named(net.weights, parameters(net))


def neutral(name, array):
    return array.T
