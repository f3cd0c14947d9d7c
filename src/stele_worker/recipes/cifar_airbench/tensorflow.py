"""The network of airbench in TensorFlow: one tf.function per step, channels last, oneDNN or cuDNN rather than XLA."""

import tensorflow as tf

from stele_worker.frameworks.tensorflow import make_training_step, zeros_like
from stele_worker.layers import outputs
from stele_worker.tasks.cifar_airbench import (
    COEFFICIENTS,
    GROUPS,
    ITERATIONS,
    SMALLEST_NORM,
    is_filter,
    is_trained,
    learning_rates,
    norm_of,
    rate_and_decay,
)

LAYOUT = "NHWC"


def network(task):
    return {"weights": {}, "others": {}}  # variables; others are running statistics and the whitening filters


def load(net, weights):
    for name, array in weights.items():
        if array.ndim == 4:
            array = array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        kind = "weights" if is_trained(name) else "others"
        net[kind][name] = tf.Variable(array.T if array.ndim == 2 else array, name=name)
    return net


def convolution(x, kernel, padding="SAME"):
    return tf.nn.conv2d(x, tf.cast(kernel, x.dtype), strides=1, padding=padding)


def pool(x, size):
    return tf.nn.max_pool2d(x, ksize=size, strides=size, padding="VALID")


def normalise(net, name, x, task, training):
    """Normalise in float32; training updates the running statistics."""
    shift, mean, variance = net["weights"][name + ".bias"], *running(net, name)
    dtype, x = x.dtype, tf.cast(x, tf.float32)
    if training:
        mean, variance = tf.nn.moments(x, (0, 1, 2))
        count = x.shape[0] * x.shape[1] * x.shape[2]
        for value, statistic in zip(running(net, name), (mean, variance * count / (count - 1))):
            value.assign_add(task.statistics * (statistic - value))
    return tf.cast(tf.nn.batch_normalization(x, mean, variance, shift, None, task.epsilon), dtype)


def running(net, name):
    return [net["others"][name + ".running_" + one] for one in ("mean", "var")]


def layer(net, name, x, task, training):
    """Apply a convolution, a pool if it is the first of its group, the normalisation and GELU."""
    x = convolution(x, net["weights"][name + ".weight"])
    x = pool(x, 2) if name.endswith("conv1") else x
    return tf.nn.gelu(normalise(net, norm_of(name), x, task, training))


def forward(net, task, x, training=False):
    x = tf.cast(x, task.dtype)  # (batch, 32, 32, 3)
    x = convolution(x, net["others"]["whiten.weight"], "VALID")
    x = tf.nn.gelu(tf.nn.bias_add(x, tf.cast(net["weights"]["whiten.bias"], x.dtype)))  # (batch, 31, 31, 24)
    for group in GROUPS:  # (batch, 15, 15, 64) to (batch, 3, 3, 256)
        x = layer(net, group + ".conv2", layer(net, group + ".conv1", x, task, training), task, training)
    x = tf.reshape(pool(x, 3), (-1, 4 * task.width))
    return tf.cast(x @ tf.cast(net["weights"]["linear.weight"], x.dtype), tf.float32) / x.shape[1]


def predict(net, task, x):
    """Return the mean over six views: the image, moved by a pixel to both sides, and their mirror images."""

    def mirrored(x):
        return (forward(net, task, x) + forward(net, task, x[:, :, ::-1])) / 2

    padded = tf.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), "REFLECT")
    return mirrored(x) / 2 + (mirrored(padded[:, :32, :32]) + mirrored(padded[:, 2:, 2:])) / 4


def loss(net, task):
    def compute(x, y):
        logarithms = tf.nn.log_softmax(forward(net, task, x, True))
        right = tf.reduce_mean(tf.gather(logarithms, y, batch_dims=1))
        return -(1 - task.smoothing) * right - task.smoothing * tf.reduce_mean(logarithms)

    compute.variables = net["others"]
    return compute


def trainable(net):
    return net["weights"]


def orthogonal(matrix, dtype):
    """Return a matrix with the singular vectors of ``matrix``, and singular values near 1."""
    x, (a, b, c) = tf.cast(matrix, dtype), COEFFICIENTS
    x = x / (tf.norm(x) + SMALLEST_NORM)
    wide = x.shape[0] <= x.shape[1]
    x = x if wide else tf.transpose(x)
    for _ in range(ITERATIONS):
        square = tf.matmul(x, x, transpose_b=True)
        x = a * x + (b * square + c * square @ square) @ x
    return tf.cast(x if wide else tf.transpose(x), tf.float32)


def muon_and_nesterov(task, weights):
    """Return update(gradients): Muon moves the filters, and Nesterov's momentum the rest."""
    velocity, count = zeros_like(weights), tf.Variable(0)
    rates = tf.constant(learning_rates(task))

    def move_filter(name, weight, gradient, rate):
        moved = velocity[name].assign(task.muon_momentum * velocity[name] + gradient)
        gradient, outputs = gradient + task.muon_momentum * moved, weight.shape[3]
        flat = tf.transpose(tf.reshape(gradient, (-1, outputs)))
        direction = tf.reshape(tf.transpose(orthogonal(flat, task.dtype)), weight.shape)
        weight.assign(weight * (outputs**0.5 / tf.norm(weight)) - task.muon_rate * rate * direction)

    def move(name, weight, gradient, factor):
        rate, decay = rate_and_decay(task, name)
        gradient = gradient + decay * weight
        moved = velocity[name].assign(task.momentum * velocity[name] + gradient)
        weight.assign_sub(factor * rate * (gradient + task.momentum * moved))

    def update(grads):
        rate, whiten_rate = tf.unstack(rates[:, tf.minimum(count, rates.shape[1] - 1)])
        for name, weight in weights.items():
            if is_filter(name):
                move_filter(name, weight, grads[name], rate)
            else:
                move(name, weight, grads[name], whiten_rate if name == "whiten.bias" else rate)
        count.assign_add(1)

    update.variables = velocity, count
    return update


def training_step(net, task):
    return make_training_step(loss(net, task), net["weights"], muon_and_nesterov(task, net["weights"]))


def stored(net):
    return {**net["weights"], **net["others"]}


def neutral(name, array):
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T


def activations(net, task):
    return outputs(globals(), ("normalise",), lambda x: forward(net, task, x))
