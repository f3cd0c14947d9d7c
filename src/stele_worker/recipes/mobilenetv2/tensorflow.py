"""MobileNetV2 in TensorFlow: one tf.function per step, channels last, oneDNN or cuDNN rather than XLA."""

import tensorflow as tf

from stele_worker.frameworks.tensorflow import dropout, make_random, make_training_step, sgd
from stele_worker.layers import outputs
from stele_worker.tasks.mobilenetv2 import blocks

LAYOUT = "NHWC"


def unit(net, name, x, task, training, stride=1):
    """Apply a convolution and its batch normalisation."""
    kernel = tf.cast(net["weights"][name + ".conv.weight"], x.dtype)
    edge = kernel.shape[0] // 2
    # at stride 2 "SAME" would pad only the end; at stride 1 it is equal and its gradient is faster
    if stride > 1:
        x = tf.pad(x, [[0, 0], [edge, edge], [edge, edge], [0, 0]])
    padding, strides = "SAME" if stride == 1 else "VALID", (1, stride, stride, 1)
    convolve = tf.nn.depthwise_conv2d if name.endswith("depthwise") else tf.nn.conv2d
    x = convolve(x, kernel, strides=strides, padding=padding)
    # the raw operation, because tf.compat.v1.nn.fused_batch_norm raises epsilon to 1.001e-5
    mean, variance = net["running"][name + ".norm.running_mean"], net["running"][name + ".norm.running_var"]
    x, moved_mean, moved_variance, *_ = tf.raw_ops.FusedBatchNormV3(
        x=x,
        scale=net["weights"][name + ".norm.weight"],
        offset=net["weights"][name + ".norm.bias"],
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
    kernel, bias = net["weights"]["classifier.weight"], net["weights"]["classifier.bias"]
    return tf.cast(tf.nn.bias_add(x @ tf.cast(kernel, x.dtype), tf.cast(bias, x.dtype)), tf.float32)


def network(task):
    return {"weights": {}, "running": {}}  # variables by name: forward computes the layers from them


def load(net, weights):
    for name, array in weights.items():
        if array.ndim == 4:
            depthwise = name.endswith("depthwise.conv.weight")  # (height, width, in, out per in)
            array = array.transpose(2, 3, 0, 1) if depthwise else array.transpose(2, 3, 1, 0)
        kind = "running" if ".running_" in name else "weights"
        net[kind][name] = tf.Variable(array.T if array.ndim == 2 else array, name=name)
    return net


def predict(net, task, x):
    return forward(net, task, x)


def loss(net, task):
    random = make_random(task)

    def compute(x, y):
        logits = forward(net, task, x, random, True)
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
    if name.endswith("depthwise.conv.weight"):
        return array.transpose(2, 3, 0, 1)
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T


def activations(net, task):
    return outputs(globals(), ("block",), lambda x: forward(net, task, x))
