"""GRU on IMDB in TensorFlow 1: a graph and its session, tf.while_loop over time."""

import numpy
import tensorflow as tf

from stele_worker.frameworks.tensorflow1.recipe import TensorFlow1Recipe


def dense(x, weight, bias):
    return tf.nn.bias_add(tf.matmul(x, weight), bias)


class Adam(tf.train.AdamOptimizer):
    """Adam with epsilon outside the root. ``count`` is a variable that counts the steps.

    TensorFlow adds epsilon before it corrects the second moment, the Task adds it after: so correct epsilon by the same
    factor.
    """

    def __init__(self, task, count):
        def epsilon():
            return task.epsilon * tf.sqrt(1 - task.beta2 ** (count + 1))

        super().__init__(task.learning_rate, task.beta1, task.beta2, epsilon)
        self.count = count

    def apply_gradients(self, pairs):
        return super().apply_gradients(pairs, global_step=self.count)


class Recipe(TensorFlow1Recipe):
    def input(self, task):
        return tf.placeholder(tf.int32, (None, task.length))

    def forward(self, net, task, x, training=False):
        # an explicit loop: CudnnCompatibleGRUCell, the closest cell, has one bias for the gates r and z
        x = tf.gather(net["embedding.weight"], tf.transpose(x))  # (150, batch, 125)
        batch = tf.shape(x)[1]
        x = tf.reshape(x, (-1, task.embedding))
        x = dense(x, net["gru.input_weight"], net["gru.input_bias"])  # one product for all steps
        x = tf.reshape(x, (task.length, batch, 3 * task.hidden))  # (150, batch, 300)
        steps = tf.TensorArray(tf.float32, task.length).unstack(x)
        # read once, because the loop would read its variables at every step
        hidden_weight, hidden_bias = net["gru.hidden_weight"].value(), net["gru.hidden_bias"].value()

        def cell(step, h):
            xr, xz, xn = tf.split(steps.read(step), 3, axis=1)
            hr, hz, hn = tf.split(dense(h, hidden_weight, hidden_bias), 3, axis=1)
            r = tf.sigmoid(xr + hr)  # (batch, 100)
            z = tf.sigmoid(xz + hz)
            n = tf.tanh(xn + r * hn)
            return step + 1, (1 - z) * n + z * h

        h = tf.zeros((batch, task.hidden))
        _, h = tf.while_loop(lambda step, h: step < task.length, cell, (0, h), maximum_iterations=task.length)
        return dense(h, net["dense.weight"], net["dense.bias"])  # (batch, 2)

    def loss(self, task, output, y):
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=output))

    def optimiser(self, net, task):
        return Adam(task, self.variables({"count": numpy.zeros((), numpy.float32)})["count"])

    def layout(self, name, array):
        return array if name == "embedding.weight" else array.T  # (in, out)
