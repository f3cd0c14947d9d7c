"""A chain of operations in TensorFlow: one tf.function per step."""

import tensorflow as tf

from stele_worker.frameworks.tensorflow.recipe import SGD, TensorFlowRecipe


class Chain(tf.Module):
    def __init__(self, task):
        super().__init__()
        self.links, self.dtype = task.links, task.dtype
        self.factor = tf.Variable(tf.zeros(task.width))
        self.summand = tf.Variable(tf.zeros(task.width))

    def __call__(self, x, record, training=None):
        factor, summand, x = [tf.cast(value, self.dtype) for value in (self.factor, self.summand, x)]
        for _ in range(self.links):
            x = x * factor + summand  # (batch, width)
        return tf.cast(x, tf.float32)


class Recipe(TensorFlowRecipe):
    def network(self, task):
        return Chain(task)

    def loss(self, task, output, y):
        return tf.reduce_mean(tf.square(output - y))

    def optimiser(self, net, task):
        return SGD(task, self.trained(net))
