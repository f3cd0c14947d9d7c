"""The network of airbench in TensorFlow: one tf.function per step, channels last, oneDNN or cuDNN rather than XLA."""

import tensorflow as tf

from stele_suite.tasks.cifar_airbench import (
    COEFFICIENTS,
    GROUPS,
    ITERATIONS,
    SMALLEST_NORM,
    is_filter,
    learning_rates,
    rate_and_decay,
)
from stele_worker.frameworks.tensorflow.recipe import TensorFlowRecipe, make_statistic, zeros_like


def convolve(x, kernel, padding="SAME"):
    return tf.nn.conv2d(x, tf.cast(kernel, x.dtype), strides=1, padding=padding)


def pool(x, size):
    return tf.nn.max_pool2d(x, ksize=size, strides=size, padding="VALID")


class Weight(tf.Module):
    def __init__(self, *shape, trainable=True):
        super().__init__()
        self.weight = tf.Variable(tf.zeros(shape), trainable=trainable)


class Norm(tf.Module):
    """Normalise in float32; training updates the running statistics."""

    def __init__(self, task, channels):
        super().__init__()
        self.task, self.bias = task, tf.Variable(tf.zeros(channels))
        self.running_mean = make_statistic(channels, 0.0)
        self.running_var = make_statistic(channels, 1.0)

    def __call__(self, x, training):
        running = mean, variance = self.running_mean, self.running_var
        dtype, x = x.dtype, tf.cast(x, tf.float32)
        if training is not None:
            mean, variance = tf.nn.moments(x, (0, 1, 2))
            count = x.shape[0] * x.shape[1] * x.shape[2]
            for value, statistic in zip(running, (mean, variance * count / (count - 1))):
                value.assign_add(self.task.statistics * (statistic - value))
        return tf.cast(tf.nn.batch_normalization(x, mean, variance, self.bias, None, self.task.epsilon), dtype)


class Group(tf.Module):
    def __init__(self, task, inputs, outputs):
        super().__init__()
        self.conv1, self.norm1 = Weight(3, 3, inputs, outputs), Norm(task, outputs)
        self.conv2, self.norm2 = Weight(3, 3, outputs, outputs), Norm(task, outputs)

    def __call__(self, x, name, record, training):
        x = pool(convolve(x, self.conv1.weight), 2)
        x = tf.nn.gelu(record(name + ".norm1", self.norm1(x, training)))
        x = convolve(x, self.conv2.weight)
        return tf.nn.gelu(record(name + ".norm2", self.norm2(x, training)))


class Airbench(tf.Module):
    def __init__(self, task):
        super().__init__()
        self.dtype = task.dtype
        self.whiten = Weight(2, 2, 3, 24, trainable=False)
        self.whiten.bias = tf.Variable(tf.zeros(24))
        inputs = 24
        for name, outputs in zip(GROUPS, (task.width, 4 * task.width, 4 * task.width)):
            setattr(self, name, Group(task, inputs, outputs))
            inputs = outputs
        self.linear = Weight(4 * task.width, 10)

    def __call__(self, x, record, training=None):
        x = convolve(tf.cast(x, self.dtype), self.whiten.weight, "VALID")
        x = tf.nn.gelu(tf.nn.bias_add(x, tf.cast(self.whiten.bias, x.dtype)))  # (batch, 31, 31, 24)
        for name in GROUPS:  # (batch, 15, 15, 64) to (batch, 3, 3, 256)
            x = getattr(self, name)(x, name, record, training)
        x = pool(x, 3)
        x = tf.reshape(x, (-1, x.shape[3]))
        return tf.cast(x @ tf.cast(self.linear.weight, x.dtype), tf.float32) / x.shape[1]  # (batch, 10)


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


class MuonAndNesterov(tf.Module):
    """Muon moves the filters, and Nesterov's momentum the rest."""

    def __init__(self, task, weights):
        super().__init__()
        self.task, self.count = task, tf.Variable(0)
        self.velocity, self.rates = zeros_like(weights), tf.constant(learning_rates(task))

    def move_filter(self, weight, velocity, gradient, rate):
        momentum, outputs = self.task.muon_momentum, weight.shape[3]
        gradient = gradient + momentum * velocity.assign(momentum * velocity + gradient)
        flat = tf.transpose(tf.reshape(gradient, (-1, outputs)))
        direction = tf.reshape(tf.transpose(orthogonal(flat, self.task.dtype)), weight.shape)
        weight.assign(weight * (outputs**0.5 / tf.norm(weight)) - self.task.muon_rate * rate * direction)

    def move(self, name, weight, velocity, gradient, factor):
        momentum, (rate, decay) = self.task.momentum, rate_and_decay(self.task, name)
        gradient = gradient + decay * weight
        moved = velocity.assign(momentum * velocity + gradient)
        weight.assign_sub(factor * rate * (gradient + momentum * moved))

    def update(self, weights, grads):
        rate, whiten_rate = tf.unstack(self.rates[:, tf.minimum(self.count, self.rates.shape[1] - 1)])
        for name, weight in weights.items():
            arrays = weight, self.velocity[name], grads[name]
            if is_filter(name):
                self.move_filter(*arrays, rate)
            else:
                self.move(name, *arrays, whiten_rate if name == "whiten.bias" else rate)
        self.count.assign_add(1)


class Recipe(TensorFlowRecipe):
    LAYOUT = "NHWC"

    def network(self, task):
        return Airbench(task)

    def predict(self, net, task, x):
        """Return the mean over six views: the image, moved by a pixel to both sides, and their mirror images."""

        def mirrored(x):
            return (self.forward(net, task, x) + self.forward(net, task, x[:, :, ::-1])) / 2

        padded = tf.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), "REFLECT")
        return mirrored(x) / 2 + (mirrored(padded[:, :32, :32]) + mirrored(padded[:, 2:, 2:])) / 4

    def loss(self, task, output, y):
        logarithms = tf.nn.log_softmax(output)
        right = tf.reduce_mean(tf.gather(logarithms, y, batch_dims=1))
        return -(1 - task.smoothing) * right - task.smoothing * tf.reduce_mean(logarithms)

    def optimiser(self, net, task):
        return MuonAndNesterov(task, self.trained(net))

    def layout(self, name, array):
        if array.ndim == 4:
            return array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        return array.T if array.ndim == 2 else array
