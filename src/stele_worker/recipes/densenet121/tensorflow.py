"""DenseNet-121 in TensorFlow: one tf.function per step, channels last, oneDNN or cuDNN rather than XLA."""

import tensorflow as tf

from stele_worker.frameworks.tensorflow import adam, make_training_step
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
from stele_worker.tasks.densenet121 import blocks

__all__ = ["LAYOUT", "load", "network", "neutral", "stored"]

LAYOUT = "NHWC"


def layer(net, name, x, task, training):
    """Return the channels that a dense layer appends to its input."""
    x = tf.nn.relu(normalisation(net, name + ".norm1", x, task, training))
    x = tf.nn.relu(normalisation(net, name + ".norm2", convolution(net, name + ".conv1", x), task, training))
    return convolution(net, name + ".conv2", x)


def transition(net, name, x, task, training):
    x = convolution(net, name + ".conv", tf.nn.relu(normalisation(net, name + ".norm", x, task, training)))
    return tf.nn.avg_pool2d(x, ksize=2, strides=2, padding="VALID")


def block(net, name, x, task, training, count):
    for number in range(count):
        new = layer(net, "{}.{}".format(name, number), x, task, training)
        x = tf.concat([x, new], axis=-1)
    return x if count else transition(net, name, x, task, training)


def forward(net, task, x, training=False):
    x = convolution(net, "stem.conv", tf.cast(x, task.dtype), 2)  # (batch, 112, 112, 64)
    x = pool(tf.nn.relu(normalisation(net, "stem.norm", x, task, training)))  # (batch, 56, 56, 64)
    for name, _, _, count in blocks(task):
        x = block(net, name, x, task, training, count)
    x = tf.nn.relu(normalisation(net, "norm", x, task, training))  # (batch, 7, 7, 1024)
    x = tf.cast(tf.reduce_mean(tf.cast(x, tf.float32), (1, 2)), task.dtype)  # (batch, 1024)
    return dense(net, "classifier", x)  # (batch, 14)


def predict(net, task, x):
    return forward(net, task, x)


def loss(net, task):
    def compute(x, y):
        logits = forward(net, task, x, True)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))

    return compute


def training_step(net, task):
    weights = trainable(net)
    return make_training_step(loss(net, task), weights, adam(task, weights))


def activations(net, task):
    return outputs(globals(), ("layer", "transition"), lambda x: forward(net, task, x))
