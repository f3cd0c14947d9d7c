"""ResNet-50 v1.5 in TensorFlow 1: a graph and its session, channels last, its only layout on a CPU."""

from functools import partial

import tensorflow as tf

from stele_worker.frameworks.tensorflow1 import make_training_step, make_variables, read_values, with_step
from stele_worker.tasks.resnet50 import blocks

LAYOUT = "NHWC"


def convolution(net, name, x, stride):
    kernel = net["weights"][name + ".weight"]
    padding = "SAME"
    if stride > 1:  # "SAME" would pad only the end
        x, padding = pad(x, kernel.shape[0].value // 2), "VALID"
    return tf.nn.conv2d(x, kernel, strides=stride, padding=padding)


def pad(x, edge):
    return tf.pad(x, [[0, 0], [edge, edge], [edge, edge], [0, 0]]) if edge else x


def normalisation(net, name, x, task, training):
    # the raw operation, because tf.nn.fused_batch_norm raises epsilon to 1.001e-5
    mean, variance = net["running"][name + ".running_mean"], net["running"][name + ".running_var"]
    x, batch_mean, batch_variance, *_ = tf.raw_ops.FusedBatchNormV3(
        x=x,
        scale=net["weights"][name + ".weight"],
        offset=net["weights"][name + ".bias"],
        mean=[] if training else mean,
        variance=[] if training else variance,
        epsilon=task.epsilon,
        is_training=training,
    )
    if training:
        for running, value in ((mean, batch_mean), (variance, batch_variance)):
            with_step(running.assign_sub(task.statistics * (running - value)))
    return x


def pool(x):
    # zero padding, because no value is below zero
    return tf.nn.max_pool2d(pad(x, 1), ksize=3, strides=2, padding="VALID")


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
    x = convolution(net, "conv1", x, 2)  # (batch, 112, 112, 64)
    x = tf.nn.relu(normalisation(net, "bn1", x, task, training))
    x = pool(x)  # (batch, 56, 56, 64)
    for name, _, _, stride in blocks():
        x = bottleneck(net, name, x, task, training, stride)
    return tf.reduce_mean(x, (1, 2))  # (batch, 2048), from (batch, 7, 7, 2048)


def network(task):
    return {"weights": {}, "running": {}}  # variables by name: features computes the layers from them


def load(net, weights):
    arrays = {}
    for name, array in weights.items():
        if array.ndim == 4:
            array = array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        arrays[name] = array.T if array.ndim == 2 else array
    for name, weight in make_variables(arrays).items():
        net["running" if ".running_" in name else "weights"][name] = weight
    return net


def forward(net, task, x, training):
    x = features(net, task, x, training)
    return tf.nn.bias_add(
        tf.matmul(x, net["weights"]["fc.weight"]), net["weights"]["fc.bias"]
    )  # (batch, 1000)


def inputs(task):
    return tf.placeholder(tf.float32, (None, task.image, task.image, 3))


def loss(net, task, x, y):
    logits = forward(net, task, x, True)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))


def predict(net, task, x):
    return features(net, task, x)


def trainable(net):
    return net["weights"]


def training_step(net, task):
    optimiser = tf.train.MomentumOptimizer(task.learning_rate, task.momentum, use_nesterov=False)
    return make_training_step(partial(inputs, task), partial(loss, net, task), trainable(net), optimiser)


def stored(net):
    return read_values(dict(net["weights"], **net["running"]))


def neutral(name, array):
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T
