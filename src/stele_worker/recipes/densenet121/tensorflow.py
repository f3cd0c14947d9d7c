"""DenseNet-121 in TensorFlow: one tf.function per step, channels last, oneDNN or cuDNN rather than XLA."""

import tensorflow as tf

from stele_worker.frameworks.tensorflow import adam, make_training_step
from stele_worker.layers import outputs
from stele_worker.tasks.densenet121 import blocks

LAYOUT = "NHWC"


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
        epsilon=task.norm_epsilon,
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
    kernel, bias = net["weights"]["classifier.weight"], net["weights"]["classifier.bias"]
    return tf.cast(tf.nn.bias_add(x @ tf.cast(kernel, x.dtype), tf.cast(bias, x.dtype)), tf.float32)


def network(task):
    return {"weights": {}, "running": {}}  # variables by name: forward computes the layers from them


def load(net, weights):
    for name, array in weights.items():
        if array.ndim == 4:
            array = array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        kind = "running" if ".running_" in name else "weights"
        net[kind][name] = tf.Variable(array.T if array.ndim == 2 else array, name=name)
    return net


def predict(net, task, x):
    return forward(net, task, x)


def loss(net, task):
    def compute(x, y):
        logits = forward(net, task, x, True)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))

    return compute


def trainable(net):
    return net["weights"]


def training_step(net, task):
    weights = trainable(net)
    return make_training_step(loss(net, task), weights, adam(task, weights))


def stored(net):
    return {**net["weights"], **net["running"]}


def neutral(name, array):
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T


def activations(net, task):
    return outputs(globals(), ("layer", "transition"), lambda x: forward(net, task, x))
