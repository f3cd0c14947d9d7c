"""A stack of dense layers in TensorFlow 1: a graph and its session; tf.recompute_grad computes segments again."""

from functools import partial

import tensorflow as tf

from stele_suite.tasks.stack import layer, segments
from stele_worker.frameworks.tensorflow1.recipe import TensorFlow1Recipe


def dense(net, name, x):
    return tf.nn.relu(tf.nn.bias_add(tf.matmul(x, net[name + ".weight"]), net[name + ".bias"]))  # (batch, width)


def segment(net, names, x):
    for name in names:
        x = dense(net, name, x)
    return x


class Recipe(TensorFlow1Recipe):
    def input(self, task):
        return tf.placeholder(tf.float32, (None, task.width))

    def target(self, task):
        return self.input(task)

    def branch(self, net, task, branch, x, training):
        for numbers in segments(task):
            part = partial(segment, net, [layer(branch, number) for number in numbers])
            x = tf.recompute_grad(part)(x) if training and task.segment else part(x)
        return x

    def forward(self, net, task, x, training=False):
        return tf.add_n([self.branch(net, task, branch, x, training) for branch in range(task.branches)])

    def loss(self, task, output, y):
        return tf.reduce_mean(tf.square(output - y))

    def optimiser(self, net, task):
        return tf.train.MomentumOptimizer(task.learning_rate, task.momentum, use_nesterov=False)

    def layout(self, name, array):
        return array.T  # (in, out)
