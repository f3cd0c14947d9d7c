"""ResNet-50 v1.5 in TensorFlow: one tf.function per step, channels last, oneDNN or cuDNN rather than XLA."""

import tensorflow as tf

from stele_worker.frameworks.tensorflow import make_training_step, sgd
from stele_worker.layers import outputs
from stele_worker.tasks.resnet50 import blocks

LAYOUT = "NHWC"


def convolution(net, name, x, stride):
    kernel = tf.cast(net["weights"][name + ".weight"], x.dtype)
    edge = kernel.shape[0] // 2
    # at stride 2 "SAME" would pad only the end; at stride 1 it is equal and its gradient is faster
    padding = "SAME" if stride == 1 else [[0, 0], [edge, edge], [edge, edge], [0, 0]]
    return tf.nn.conv2d(x, kernel, strides=stride, padding=padding)


def normalisation(net, name, x, task, training):
    # the raw operation, because tf.compat.v1.nn.fused_batch_norm raises epsilon to 1.001e-5
    mean, variance = net["running"][name + ".running_mean"], net["running"][name + ".running_var"]
    x, moved_mean, moved_variance, *_ = tf.raw_ops.FusedBatchNormV3(
        x=x,
        scale=net["weights"][name + ".weight"],
        offset=net["weights"][name + ".bias"],
        mean=mean,
        variance=variance,
        epsilon=task.epsilon,
        exponential_avg_factor=task.statistics,
        is_training=training,
    )
    if training:
        mean.assign(moved_mean)
        variance.assign(moved_variance)
    return x


def pool(x):
    # zero padding, because no value is below zero; the gradient of max_pool2d's explicit padding is ten times slower
    return tf.nn.max_pool2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), ksize=3, strides=2, padding="VALID")


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


def network(task):
    return {"weights": {}, "running": {}}  # variables by name: features computes the layers from them


def load(net, weights):
    for name, array in weights.items():
        if array.ndim == 4:
            array = array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        kind = "running" if ".running_" in name else "weights"
        net[kind][name] = tf.Variable(array.T if array.ndim == 2 else array, name=name)
    return net


def forward(net, task, x, training):
    x = tf.cast(features(net, task, x, training), task.dtype)
    kernel, bias = tf.cast(net["weights"]["fc.weight"], x.dtype), tf.cast(net["weights"]["fc.bias"], x.dtype)
    return tf.cast(tf.nn.bias_add(x @ kernel, bias), tf.float32)  # (batch, 1000)


def predict(net, task, x):
    return features(net, task, x)


def loss(net, task):
    def compute(x, y):
        logits = forward(net, task, x, True)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))

    return compute


def trainable(net):
    return net["weights"]


def training_step(net, task):
    weights = trainable(net)
    return make_training_step(loss(net, task), weights, sgd(task, weights))


def stored(net):
    return {**net["weights"], **net["running"]}


def neutral(name, array):
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T


def activations(net, task):
    return outputs(globals(), ("bottleneck",), lambda x: features(net, task, x))
