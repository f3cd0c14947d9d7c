"""ResNet-50 v1.5 in TensorFlow 1: a graph and its session, channels last, its only layout on a CPU."""

import tensorflow as tf

from stele_suite.tasks.resnet50 import blocks
from stele_worker.frameworks.tensorflow1.recipe import TensorFlow1Recipe, with_step


def convolution(net, name, x, stride):
    kernel = net[name + ".weight"]
    padding = "SAME"
    if stride > 1:  # "SAME" would pad only the end
        x, padding = pad(x, kernel.shape[0].value // 2), "VALID"
    return tf.nn.conv2d(x, kernel, strides=stride, padding=padding)


def pad(x, edge):
    return tf.pad(x, [[0, 0], [edge, edge], [edge, edge], [0, 0]]) if edge else x


def normalisation(net, name, x, task, training):
    # the raw operation, because tf.nn.fused_batch_norm raises epsilon to 1.001e-5
    mean, variance = net[name + ".running_mean"], net[name + ".running_var"]
    x, batch_mean, batch_variance, *_ = tf.raw_ops.FusedBatchNormV3(
        x=x,
        scale=net[name + ".weight"],
        offset=net[name + ".bias"],
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
    x = tf.nn.relu(normalisation(net, name + ".bn2", convolution(net, name + ".conv2", x, stride), task, training))
    return tf.nn.relu(
        normalisation(net, name + ".bn3", convolution(net, name + ".conv3", x, 1), task, training) + shortcut
    )


class Recipe(TensorFlow1Recipe):
    LAYOUT = "NHWC"

    def input(self, task):
        return tf.placeholder(tf.float32, (None, task.image, task.image, 3))

    def features(self, net, task, x, training=False):
        x = convolution(net, "conv1", x, 2)  # (batch, 112, 112, 64)
        x = tf.nn.relu(normalisation(net, "bn1", x, task, training))
        x = pool(x)  # (batch, 56, 56, 64)
        for name, _, _, stride in blocks():
            x = bottleneck(net, name, x, task, training, stride)
        return tf.reduce_mean(x, (1, 2))  # (batch, 2048), from (batch, 7, 7, 2048)

    def forward(self, net, task, x, training=False):
        x = self.features(net, task, x, training)
        return tf.nn.bias_add(tf.matmul(x, net["fc.weight"]), net["fc.bias"])  # (batch, 1000)

    def predict(self, net, task, x):
        return self.features(net, task, x)

    def loss(self, task, output, y):
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=output))

    def optimiser(self, net, task):
        return tf.train.MomentumOptimizer(task.learning_rate, task.momentum, use_nesterov=False)

    def layout(self, name, array):
        return array.transpose(2, 3, 1, 0) if array.ndim == 4 else array.T  # (height, width, in, out), (in, out)
