"""A chain of operations in TensorFlow 1: a graph and its session."""

import tensorflow as tf

from stele_worker.frameworks.tensorflow1.recipe import TensorFlow1Recipe


class Recipe(TensorFlow1Recipe):
    def input(self, task):
        return tf.placeholder(tf.float32, (None, task.width))

    def target(self, task):
        return self.input(task)

    def forward(self, net, task, x, training=False):
        factor, summand = tf.convert_to_tensor(net["factor"]), tf.convert_to_tensor(net["summand"])  # read once
        for _ in range(task.links):
            x = x * factor + summand  # (batch, width)
        return x

    def loss(self, task, output, y):
        return tf.reduce_mean(tf.square(output - y))

    def optimiser(self, net, task):
        return tf.train.MomentumOptimizer(task.learning_rate, task.momentum, use_nesterov=False)
