"""A stack of dense layers in TensorFlow: one tf.function per step, tf.recompute_grad of segments."""

import tensorflow as tf

from stele_worker.frameworks.tensorflow import make_training_step, sgd
from stele_worker.layers import outputs
from stele_worker.tasks import stack

LAYOUT = None


def network(task):
    return {}  # variables by name


def load(net, weights):
    net.update((name, tf.Variable(array.T, name=name)) for name, array in weights.items())
    return net


def layer(net, name, x):
    weight, bias = tf.cast(net[name + ".weight"], x.dtype), tf.cast(net[name + ".bias"], x.dtype)
    return tf.nn.relu(x @ weight + bias)  # (batch, width)


def compute(net, task, branch, x, recomputes):
    for numbers in stack.segments(task):

        def segment(x, numbers=tuple(numbers)):
            for number in numbers:
                x = layer(net, stack.layer(branch, number), x)
            return x

        x = (tf.recompute_grad(segment) if recomputes else segment)(x)
    return x


def forward(net, task, x, recomputes=False):
    x = tf.cast(x, task.dtype)
    branches = [compute(net, task, branch, x, recomputes) for branch in range(task.branches)]
    return tf.cast(tf.add_n(branches), tf.float32)


def predict(net, task, x):
    return forward(net, task, x)


def loss(net, task):
    def compute(x, y):
        return tf.reduce_mean(tf.square(forward(net, task, x, task.segment is not None) - y))

    return compute


def trainable(net):
    return net


def training_step(net, task):
    return make_training_step(loss(net, task), net, sgd(task, net))


def stored(net):
    return net


def neutral(name, array):
    return array.T


def activations(net, task):
    return outputs(globals(), ("layer",), lambda x: forward(net, task, x))
