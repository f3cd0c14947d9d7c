"""ResNet-9 in TensorFlow: one tf.function per step, channels last, oneDNN or cuDNN rather than XLA."""

from functools import partial

import tensorflow as tf

from stele_suite.tasks.cifar_fast import (
    AVERAGE_EVERY,
    AVERAGE_KEEPS,
    POOLED,
    RESIDUAL,
    choices,
    layers,
    learning_rates,
    rate_and_decay,
)
from stele_worker.frameworks.tensorflow.recipe import TensorFlowRecipe, make_statistic, zeros_like


class Convolution(tf.Module):
    def __init__(self, inputs, outputs, size, trainable=True):
        super().__init__()
        self.weight = tf.Variable(tf.zeros((size, size, inputs, outputs)), trainable=trainable)

    def __call__(self, x):
        return tf.nn.conv2d(x, tf.cast(self.weight, x.dtype), strides=1, padding="SAME")


def pool(x, size):
    return tf.nn.max_pool2d(x, ksize=size, strides=size, padding="VALID")


class Norm(tf.Module):
    """Normalise in float32: in training by the statistics of the batch or its ghost batches."""

    def __init__(self, task, channels):
        super().__init__()
        self.task, self.ghost = task, choices(task).ghost
        self.weight = tf.Variable(tf.ones(channels)) if choices(task).trains_scale else None
        self.bias = tf.Variable(tf.zeros(channels))
        self.running_mean = make_statistic(channels, 0.0)
        self.running_var = make_statistic(channels, 1.0)

    def __call__(self, x, training):
        running, learned = (self.running_mean, self.running_var), (self.bias, self.weight)
        if training is None:
            y = tf.nn.batch_normalization(tf.cast(x, tf.float32), *running, *learned, self.task.epsilon)
            return tf.cast(y, x.dtype)
        ghost = self.ghost or x.shape[0]
        # image i is in group i modulo groups
        folded = tf.reshape(tf.cast(x, tf.float32), (ghost, x.shape[0] // ghost, *x.shape[1:]))
        mean = tf.reduce_mean(folded, (0, 2, 3), keepdims=True)
        # on a CPU, tf.nn.moments reads the images twice more
        variance = tf.reduce_mean(tf.square(folded), (0, 2, 3), keepdims=True) - tf.square(mean)
        count = ghost * x.shape[1] * x.shape[2]
        for value, statistic in zip(running, (mean, variance * count / (count - 1))):
            of_batch = tf.reshape(tf.reduce_mean(statistic, 1), (-1,))
            value.assign_add(self.task.statistics * (of_batch - value))
        folded = tf.nn.batch_normalization(folded, mean, variance, *learned, self.task.epsilon)
        return tf.cast(tf.reshape(folded, x.shape), x.dtype)


class Layer(tf.Module):
    """A convolution, its normalisation, the activation, and the pool of some layers."""

    def __init__(self, task, name, inputs, outputs):
        super().__init__()
        self.chosen, self.pooled = choices(task), name in POOLED
        self.conv = Convolution(inputs, outputs, 1 if inputs == 27 else 3)
        self.norm = Norm(task, outputs)

    def activate(self, x):
        alpha = self.chosen.alpha
        # tf.nn.elu is one operation, also in the gradient
        return alpha * tf.nn.elu(x / alpha) if alpha else tf.nn.relu(x)

    def __call__(self, x, training):
        x = self.conv(x)
        if self.pooled and self.chosen.pool_first:
            x = pool(x, 2)
        x = self.activate(self.norm(x, training))
        return pool(x, 2) if self.pooled and not self.chosen.pool_first else x


class ResNet9(tf.Module):
    def __init__(self, task):
        super().__init__()
        self.task = task
        self.whiten = Convolution(3, 27, 3, trainable=False) if choices(task).whitens else None
        for name, inputs, outputs in layers(task):
            parent, _, child = name.rpartition(".")
            setattr(getattr(self, parent) if parent else self, child, Layer(task, name, inputs, outputs))
        self.linear = tf.Module()
        self.linear.weight = tf.Variable(tf.zeros((8 * task.width, 10)))

    def __call__(self, x, record, training=None):
        x = tf.cast(x, self.task.dtype)  # (batch, 32, 32, 3)
        if self.whiten is not None:
            x = self.whiten(x)  # (batch, 32, 32, 27)
        for name in ("prep", "layer1", "layer2", "layer3"):  # (batch, 32, 32, 64) to (batch, 4, 4, 512)
            layer = getattr(self, name)
            x = record(name, layer(x, training))
            if name in RESIDUAL:
                y = record(name + ".residual1", layer.residual1(x, training))
                x = x + record(name + ".residual2", layer.residual2(y, training))
        x = tf.reshape(pool(x, 4), (-1, 8 * self.task.width))
        x = x @ tf.cast(self.linear.weight, x.dtype)
        return tf.cast(x, tf.float32) * choices(self.task).factor  # (batch, 10)


class Nesterov(tf.Module):
    """Nesterov's momentum with the learning rate of each step inside the velocity.

    ``move_average`` moves the moving average to the new weights, if there is one.
    """

    def __init__(self, task, weights, move_average):
        super().__init__()
        self.task, self.count, self.move_average = task, tf.Variable(0), move_average
        self.velocity, self.rates = zeros_like(weights), tf.constant(learning_rates(task))

    def update(self, weights, grads):
        momentum, velocity = self.task.momentum, self.velocity
        rate = self.rates[tf.minimum(self.count, len(self.rates) - 1)]
        for name, weight in weights.items():
            factor, decay = rate_and_decay(self.task, name)
            change = -factor * rate * (grads[name] + decay * weight)
            moved = velocity[name].assign(momentum * velocity[name] + change)
            weight.assign_add(momentum * moved + change)
        self.count.assign_add(1)
        if self.move_average is not None:
            tf.cond(self.count % AVERAGE_EVERY == 1, self.move_average, lambda: False)


class Recipe(TensorFlowRecipe):
    """A network has in ``average`` the network of the moving averages, if the Task has them."""

    LAYOUT = "NHWC"

    def network(self, task):
        net = ResNet9(task)
        net.average = ResNet9(task) if choices(task).average else None
        return net

    def predict(self, net, task, x):
        """Return logits: those of the moving average, and the mean with those of the mirror image."""
        net = net.average or net
        logits = self.forward(net, task, x)
        return (logits + self.forward(net, task, x[:, :, ::-1])) / 2 if choices(task).flips else logits

    def loss(self, task, output, y):
        logarithms, smoothing = tf.nn.log_softmax(output), choices(task).smoothing
        right = tf.reduce_mean(tf.gather(logarithms, y, batch_dims=1))
        return -(1 - smoothing) * right - smoothing * tf.reduce_mean(logarithms)

    def optimiser(self, net, task):
        move_average = partial(self.move_average, net) if choices(task).average else None
        return Nesterov(task, self.trained(net), move_average)

    def layout(self, name, array):
        if array.ndim == 4:
            return array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        return array.T if array.ndim == 2 else array

    def move_average(self, net):
        newest = self.stored(net)
        for name, average in self.stored(net.average).items():
            average.assign(AVERAGE_KEEPS * average + (1 - AVERAGE_KEEPS) * newest[name])
        return True

    def assign(self, net, arrays):
        if net.average:
            super().assign(net.average, arrays)
        return super().assign(net, arrays)

    def stored(self, net):
        return {name: value for name, value in super().stored(net).items() if not name.startswith("average.")}
