"""A stack of dense layers in TensorFlow: one tf.function per step, tf.recompute_grad of segments."""

import tensorflow as tf

from stele_suite.tasks import stack
from stele_worker.frameworks.tensorflow.recipe import SGD, TensorFlowRecipe


class Layer(tf.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = tf.Variable(tf.zeros((width, width)))
        self.bias = tf.Variable(tf.zeros(width))

    def __call__(self, x):
        weight, bias = tf.cast(self.weight, x.dtype), tf.cast(self.bias, x.dtype)
        return tf.nn.relu(x @ weight + bias)  # (batch, width)


class Stack(tf.Module):
    def __init__(self, task):
        super().__init__()
        self.task = task
        self.branch = [[Layer(task.width) for _ in range(task.depth)] for _ in range(task.branches)]

    def compute(self, branch, x, record, recomputes):
        for numbers in stack.segments(self.task):

            def segment(x, numbers=tuple(numbers)):
                for number in numbers:
                    x = record(stack.layer(branch, number), self.branch[branch][number](x))
                return x

            x = (tf.recompute_grad(segment) if recomputes else segment)(x)
        return x

    def __call__(self, x, record, training=None):
        recomputes = training is not None and self.task.segment is not None
        x = tf.cast(x, self.task.dtype)
        branches = [self.compute(branch, x, record, recomputes) for branch in range(self.task.branches)]
        return tf.cast(tf.add_n(branches), tf.float32)


class Recipe(TensorFlowRecipe):
    def network(self, task):
        return Stack(task)

    def loss(self, task, output, y):
        return tf.reduce_mean(tf.square(output - y))

    def optimiser(self, net, task):
        return SGD(task, self.trained(net))

    def layout(self, name, array):
        return array.T if array.ndim == 2 else array  # (in, out)
