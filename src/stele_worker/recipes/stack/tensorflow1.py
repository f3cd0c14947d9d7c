"""A stack of dense layers in TensorFlow 1: a graph and its session; tf.recompute_grad computes segments again."""

from functools import partial

import tensorflow as tf

from stele_worker.frameworks.tensorflow1 import make_training_step, make_variables, read_values
from stele_worker.tasks.stack import layer, segments

LAYOUT = None


def network(task):
    return {}  # variables by name


def load(net, weights):
    net.update(make_variables({name: array.T for name, array in weights.items()}))
    return net


def dense(net, name, x):
    return tf.nn.relu(tf.nn.bias_add(tf.matmul(x, net[name + ".weight"]), net[name + ".bias"]))


def forward(net, task, x, training=False):
    def segment(branch, numbers, x):
        for number in numbers:
            x = dense(net, layer(branch, number), x)  # (batch, width)
        return x

    def compute(branch, x):
        for numbers in segments(task):
            part = partial(segment, branch, numbers)
            x = tf.recompute_grad(part)(x) if training and task.segment else part(x)
        return x

    return tf.add_n([compute(branch, x) for branch in range(task.branches)])


def predict(net, task, x):
    return forward(net, task, x)


def inputs(task):
    return tf.placeholder(tf.float32, (None, task.width))


targets = inputs


def loss(net, task, x, y):
    return tf.reduce_mean(tf.square(forward(net, task, x, training=True) - y))


def trainable(net):
    return net


def training_step(net, task):
    optimiser = tf.train.MomentumOptimizer(task.learning_rate, task.momentum, use_nesterov=False)
    made = partial(inputs, task), partial(loss, net, task), net, optimiser
    return make_training_step(*made, targets=partial(targets, task))


def stored(net):
    return read_values(net)


def neutral(name, array):
    return array.T
