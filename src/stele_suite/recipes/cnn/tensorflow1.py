"""CNN on CIFAR-10 in TensorFlow 1: a graph and its session, channels last, its only layout on a CPU."""

import tensorflow as tf

from stele_worker.frameworks.tensorflow1.recipe import TensorFlow1Recipe


def convolution(net, name, x):
    # at stride 1 this pads by 1 on every side
    x = tf.nn.conv2d(x, net[name + ".weight"], strides=1, padding="SAME")
    return tf.nn.bias_add(x, net[name + ".bias"])


def pool(x):
    return tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID")


def dropout(x, rate, training):
    return tf.nn.dropout(x, rate=rate) if training and rate > 0 else x


def dense(net, name, x):
    return tf.nn.bias_add(tf.matmul(x, net[name + ".weight"]), net[name + ".bias"])


class Recipe(TensorFlow1Recipe):
    LAYOUT = "NHWC"

    def input(self, task):
        return tf.placeholder(tf.float32, (None, 32, 32, 3))

    def forward(self, net, task, x, training=False):
        x = tf.nn.relu(convolution(net, "conv1", x))  # (batch, 32, 32, 50)
        x = tf.nn.relu(pool(convolution(net, "conv2", x)))  # (batch, 16, 16, 50)
        x = dropout(x, task.dropout[0], training)
        x = tf.nn.relu(convolution(net, "conv3", x))  # (batch, 16, 16, 100)
        x = tf.nn.relu(pool(convolution(net, "conv4", x)))  # (batch, 8, 8, 100)
        x = dropout(x, task.dropout[1], training)
        x = tf.reshape(x, (-1, 6400))
        x = dropout(tf.nn.relu(dense(net, "dense1", x)), task.dropout[2], training)
        return dense(net, "dense2", x)  # (batch, 10)

    def loss(self, task, output, y):
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=output))

    def optimiser(self, net, task):
        return tf.train.MomentumOptimizer(task.learning_rate, task.momentum, use_nesterov=False)

    def layout(self, name, array):
        if array.ndim == 4:
            return array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        if name == "dense1.weight":  # from channel, row, column to the order of flattening here
            array = array.reshape(512, 100, 8, 8).transpose(0, 2, 3, 1).reshape(512, 6400)
        return array.T
