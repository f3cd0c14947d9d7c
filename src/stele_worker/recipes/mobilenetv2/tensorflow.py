"""MobileNetV2 in TensorFlow: one tf.function per step, channels last, oneDNN or cuDNN rather than XLA."""

import tensorflow as tf

from stele_worker.frameworks.tensorflow import dropout, make_random, make_training_step, sgd
from stele_worker.images.tensorflow import (
    convolution,
    dense,
    load,
    network,
    neutral,
    normalisation,
    stored,
    trainable,
)
from stele_worker.layers import outputs
from stele_worker.tasks.mobilenetv2 import blocks

__all__ = ["LAYOUT", "load", "network", "neutral", "stored"]

LAYOUT = "NHWC"


def depthwise(net, name, x, stride):
    if stride > 1:  # "SAME" would pad only the end
        x = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])
    kernel, padding = tf.cast(net["weights"][name + ".weight"], x.dtype), "SAME" if stride == 1 else "VALID"
    return tf.nn.depthwise_conv2d(x, kernel, strides=(1, stride, stride, 1), padding=padding)


def unit(net, name, x, task, training, stride=1):
    """Apply a convolution, depthwise if its name says so, and its batch normalisation."""
    convolve = depthwise if name.endswith("depthwise") else convolution
    return normalisation(net, name + ".norm", convolve(net, name + ".conv", x, stride), task, training)


def block(net, name, x, task, training, width, channels, stride):
    y = x
    if width != x.shape[-1]:
        y = tf.nn.relu6(unit(net, name + ".expand", y, task, training))
    y = tf.nn.relu6(unit(net, name + ".depthwise", y, task, training, stride))
    y = unit(net, name + ".project", y, task, training)
    return x + y if stride == 1 and x.shape[-1] == channels else y


def forward(net, task, x, random=None, training=False):
    x = tf.cast(x, task.dtype)  # (batch, 224, 224, 3)
    x = tf.nn.relu6(unit(net, "stem", x, task, training, 2))  # (batch, 112, 112, 32)
    for name, _, width, channels, stride in blocks():
        x = block(net, name, x, task, training, width, channels, stride)
    x = tf.nn.relu6(unit(net, "head", x, task, training))  # (batch, 7, 7, 1280)
    x = tf.reduce_mean(tf.cast(x, tf.float32), (1, 2))
    x = tf.cast(dropout(x, task.dropout[0], random), task.dtype)
    return dense(net, "classifier", x)  # (batch, 1000)


def predict(net, task, x):
    return forward(net, task, x)


def loss(net, task):
    random = make_random(task)

    def compute(x, y):
        logits = forward(net, task, x, random, True)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))

    return compute


def training_step(net, task):
    weights = trainable(net)
    return make_training_step(loss(net, task), weights, sgd(task, weights))


def activations(net, task):
    return outputs(globals(), ("block",), lambda x: forward(net, task, x))
