"""CNN on CIFAR-10 in TensorFlow 1: a graph and its session, channels last, its only layout on a CPU."""

from functools import partial

import tensorflow as tf

from stele_worker.frameworks.tensorflow1 import make_training_step, make_variables, read_values

LAYOUT = "NHWC"


def network(task):
    return {}  # variables by name: forward computes the layers from them


def load(net, weights):
    arrays = {}
    for name, array in weights.items():
        if array.ndim == 4:
            array = array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        if name == "dense1.weight":  # from channel, row, column to the order of flattening here
            array = array.reshape(512, 100, 8, 8).transpose(0, 2, 3, 1).reshape(512, 6400)
        arrays[name] = array.T if array.ndim == 2 else array
    net.update(make_variables(arrays))
    return net


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


def forward(net, task, x, training=False):
    x = tf.nn.relu(convolution(net, "conv1", x))  # (batch, 32, 32, 50)
    x = tf.nn.relu(pool(convolution(net, "conv2", x)))  # (batch, 16, 16, 50)
    x = dropout(x, task.dropout[0], training)
    x = tf.nn.relu(convolution(net, "conv3", x))  # (batch, 16, 16, 100)
    x = tf.nn.relu(pool(convolution(net, "conv4", x)))  # (batch, 8, 8, 100)
    x = dropout(x, task.dropout[1], training)
    x = tf.reshape(x, (-1, 6400))
    x = dropout(tf.nn.relu(dense(net, "dense1", x)), task.dropout[2], training)
    return dense(net, "dense2", x)  # (batch, 10)


def inputs(task):
    return tf.placeholder(tf.float32, (None, 32, 32, 3))


def loss(net, task, x, y):
    logits = forward(net, task, x, training=True)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))


def predict(net, task, x):
    return forward(net, task, x)


def trainable(net):
    return net


def training_step(net, task):
    optimiser = tf.train.MomentumOptimizer(task.learning_rate, task.momentum, use_nesterov=False)
    return make_training_step(partial(inputs, task), partial(loss, net, task), net, optimiser)


def stored(net):
    return read_values(net)


def neutral(name, array):
    if name == "dense1.weight":
        return array.T.reshape(512, 8, 8, 100).transpose(0, 3, 1, 2).reshape(512, 6400)
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T
