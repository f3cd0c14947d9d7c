"""A chain of operations in TensorFlow: one tf.function per step."""

import tensorflow as tf

from stele_worker.frameworks.tensorflow import make_training_step, sgd

LAYOUT = None


def network(task):
    return {}  # variables by name


def load(net, weights):
    net.update((name, tf.Variable(array, name=name)) for name, array in weights.items())
    return net


def predict(net, task, x):
    factor, summand, x = [tf.cast(value, task.dtype) for value in (net["factor"], net["summand"], x)]
    for _ in range(task.links):
        x = x * factor + summand  # (batch, width)
    return tf.cast(x, tf.float32)


def loss(net, task):
    return lambda x, y: tf.reduce_mean(tf.square(predict(net, task, x) - y))


def trainable(net):
    return net


def training_step(net, task):
    return make_training_step(loss(net, task), net, sgd(task, net))


def stored(net):
    return net


def neutral(name, array):
    return array
