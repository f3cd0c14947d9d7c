"""Networks of images in TensorFlow: layers in the layout (batch, height, width, channel), and variables by name."""

import tensorflow as tf

from stele_worker.images import norm_epsilon


def network(task):
    return {"weights": {}, "running": {}}  # a recipe computes the layers from them


def load(net, weights):
    for name, array in weights.items():
        if array.ndim == 4:
            array = neutral(name, array) if is_depthwise(name) else array.transpose(2, 3, 1, 0)
        kind = "running" if ".running_" in name else "weights"
        net[kind][name] = tf.Variable(array.T if array.ndim == 2 else array, name=name)
    return net


def trainable(net):
    return net["weights"]


def stored(net):
    return {**net["weights"], **net["running"]}


def is_depthwise(name):
    return name.endswith("depthwise.conv.weight")


def neutral(name, array):
    if is_depthwise(name):
        return array.transpose(2, 3, 0, 1)  # from (height, width, in, out per in), and back
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T  # from (height, width, in, out)


def convolution(net, name, x, stride=1):
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
        epsilon=norm_epsilon(task),
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


def dense(net, name, x):
    """Return float32 logits."""
    kernel, bias = (tf.cast(net["weights"][name + kind], x.dtype) for kind in (".weight", ".bias"))
    return tf.cast(tf.nn.bias_add(x @ kernel, bias), tf.float32)
