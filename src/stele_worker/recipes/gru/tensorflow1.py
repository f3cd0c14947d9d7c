"""GRU on IMDB in TensorFlow 1: a graph and its session, tf.while_loop over time."""

from functools import partial

import numpy
import tensorflow as tf

from stele_worker.frameworks.tensorflow1 import make_training_step, make_variables, read_values

LAYOUT = None


def network(task):
    return {}  # variables by name: forward computes the layers from them


def load(net, weights):
    arrays = {}
    for name, array in weights.items():
        dense = array.ndim == 2 and name != "embedding.weight"
        arrays[name] = array.T if dense else array  # (in, out)
    net.update(make_variables(arrays))
    return net


def dense(x, weight, bias):
    return tf.nn.bias_add(tf.matmul(x, weight), bias)


def forward(net, task, x):
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


def inputs(task):
    return tf.placeholder(tf.int32, (None, task.length))


def loss(net, task, x, y):
    logits = forward(net, task, x)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))


def predict(net, task, x):
    return forward(net, task, x)


def trainable(net):
    return net


def training_step(net, task):
    count = make_variables({"count": numpy.zeros((), numpy.float32)})["count"]

    def epsilon():
        # TensorFlow adds epsilon before it corrects the second moment, the Task adds it after: so correct
        # epsilon by the same factor
        return task.epsilon * tf.sqrt(1 - task.beta2 ** (count + 1))

    optimiser = tf.train.AdamOptimizer(task.learning_rate, task.beta1, task.beta2, epsilon)
    return make_training_step(partial(inputs, task), partial(loss, net, task), net, optimiser, count)


def stored(net):
    return read_values(net)


def neutral(name, array):
    return array if name == "embedding.weight" else array.T
