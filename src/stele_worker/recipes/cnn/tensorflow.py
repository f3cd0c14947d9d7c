"""CNN on CIFAR-10 in TensorFlow: one tf.function per step, channels last, oneDNN or cuDNN rather than XLA."""

import tensorflow as tf

from stele_worker.frameworks.tensorflow import dropout, make_random, make_training_step, sgd
from stele_worker.layers import outputs

LAYOUT = "NHWC"


def network(task):
    return {}  # variables by name: forward computes the layers from them


def load(net, weights):
    for name, array in weights.items():
        if array.ndim == 4:
            array = array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        if name == "dense1.weight":  # from channel, row, column to the order of flattening here
            array = array.reshape(512, 100, 8, 8).transpose(0, 2, 3, 1).reshape(512, 6400)
        net[name] = tf.Variable(array.T if array.ndim == 2 else array, name=name)
    return net


def convolution(net, name, x):
    kernel, bias = tf.cast(net[name + ".weight"], x.dtype), tf.cast(net[name + ".bias"], x.dtype)
    x = tf.nn.conv2d(x, kernel, strides=1, padding="SAME")  # at stride 1 this pads by 1 on every side
    return tf.nn.bias_add(x, bias)


def pool(x):
    return tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID")


def dense(net, name, x):
    return tf.nn.bias_add(x @ tf.cast(net[name + ".weight"], x.dtype), tf.cast(net[name + ".bias"], x.dtype))


def forward(net, task, x, random=None):
    x = tf.cast(x, task.dtype)  # (batch, 32, 32, 3)
    x = tf.nn.relu(convolution(net, "conv1", x))  # (batch, 32, 32, 50)
    x = tf.nn.relu(pool(convolution(net, "conv2", x)))  # (batch, 16, 16, 50)
    x = dropout(x, task.dropout[0], random)
    x = tf.nn.relu(convolution(net, "conv3", x))  # (batch, 16, 16, 100)
    x = tf.nn.relu(pool(convolution(net, "conv4", x)))  # (batch, 8, 8, 100)
    x = dropout(x, task.dropout[1], random)
    x = tf.reshape(x, (-1, 6400))
    x = dropout(tf.nn.relu(dense(net, "dense1", x)), task.dropout[2], random)
    return tf.cast(dense(net, "dense2", x), tf.float32)  # (batch, 10)


def predict(net, task, x):
    return forward(net, task, x)


def loss(net, task):
    random = make_random(task)

    def compute(x, y):
        logits = forward(net, task, x, random)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))

    compute.variables = random.state
    return compute


def trainable(net):
    return net


def training_step(net, task):
    return make_training_step(loss(net, task), net, sgd(task, net))


def stored(net):
    return net


def neutral(name, array):
    if name == "dense1.weight":
        return array.T.reshape(512, 8, 8, 100).transpose(0, 3, 1, 2).reshape(512, 6400)
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T


def activations(net, task):
    return outputs(globals(), ("convolution", "dense"), lambda x: forward(net, task, x))
