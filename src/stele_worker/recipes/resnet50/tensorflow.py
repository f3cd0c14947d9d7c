"""ResNet-50 v1.5 in TensorFlow: one tf.function per step, channels last, oneDNN or cuDNN rather than XLA."""

import tensorflow as tf

from stele_worker.frameworks.tensorflow import make_training_step, sgd
from stele_worker.images.tensorflow import (
    convolution,
    dense,
    load,
    network,
    neutral,
    normalisation,
    pool,
    stored,
    trainable,
)
from stele_worker.layers import outputs
from stele_worker.tasks.resnet50 import blocks

__all__ = ["LAYOUT", "load", "network", "neutral", "stored"]

LAYOUT = "NHWC"


def bottleneck(net, name, x, task, training, stride):
    shortcut = x
    if name.endswith(".0"):
        shortcut = convolution(net, name + ".downsample.0", x, stride)
        shortcut = normalisation(net, name + ".downsample.1", shortcut, task, training)
    x = tf.nn.relu(normalisation(net, name + ".bn1", convolution(net, name + ".conv1", x, 1), task, training))
    x = tf.nn.relu(
        normalisation(net, name + ".bn2", convolution(net, name + ".conv2", x, stride), task, training)
    )
    return tf.nn.relu(
        normalisation(net, name + ".bn3", convolution(net, name + ".conv3", x, 1), task, training) + shortcut
    )


def features(net, task, x, training=False):
    x = tf.cast(x, task.dtype)  # (batch, 224, 224, 3)
    x = convolution(net, "conv1", x, 2)  # (batch, 112, 112, 64)
    x = tf.nn.relu(normalisation(net, "bn1", x, task, training))
    x = pool(x)  # (batch, 56, 56, 64)
    for name, _, _, stride in blocks():
        x = bottleneck(net, name, x, task, training, stride)
    return tf.reduce_mean(tf.cast(x, tf.float32), (1, 2))  # (batch, 2048), from (batch, 7, 7, 2048)


def forward(net, task, x, training):
    x = tf.cast(features(net, task, x, training), task.dtype)
    return dense(net, "fc", x)  # (batch, 1000)


def predict(net, task, x):
    return features(net, task, x)


def loss(net, task):
    def compute(x, y):
        logits = forward(net, task, x, True)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))

    return compute


def training_step(net, task):
    weights = trainable(net)
    return make_training_step(loss(net, task), weights, sgd(task, weights))


def activations(net, task):
    return outputs(globals(), ("bottleneck",), lambda x: features(net, task, x))
