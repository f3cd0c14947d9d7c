"""A chain of operations in TensorFlow 1: a graph and its session."""

from functools import partial

import tensorflow as tf

from stele_worker.frameworks.tensorflow1 import make_training_step, make_variables, read_values

LAYOUT = None


def network(task):
    return {}  # variables by name


def load(net, weights):
    net.update(make_variables(weights))
    return net


def predict(net, task, x):
    factor, summand = tf.convert_to_tensor(net["factor"]), tf.convert_to_tensor(net["summand"])  # read once
    for _ in range(task.links):
        x = x * factor + summand  # (batch, width)
    return x


def inputs(task):
    return tf.placeholder(tf.float32, (None, task.width))


targets = inputs


def loss(net, task, x, y):
    return tf.reduce_mean(tf.square(predict(net, task, x) - y))


def trainable(net):
    return net


def training_step(net, task):
    optimiser = tf.train.MomentumOptimizer(task.learning_rate, task.momentum, use_nesterov=False)
    made = partial(inputs, task), partial(loss, net, task), net, optimiser
    return make_training_step(*made, targets=partial(targets, task))


def stored(net):
    return read_values(net)


def neutral(name, array):
    return array
