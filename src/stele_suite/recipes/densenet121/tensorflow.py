"""DenseNet-121 in TensorFlow: one tf.function per step, channels last, oneDNN or cuDNN rather than XLA."""

import tensorflow as tf

from stele_suite.tasks.densenet121 import blocks
from stele_worker.frameworks.tensorflow.recipe import Adam, Linear, TensorFlowRecipe, make_statistic


class Convolution(tf.Module):
    def __init__(self, inputs, outputs, size, stride=1):
        super().__init__()
        self.stride, self.edge = stride, size // 2
        self.weight = tf.Variable(tf.zeros((size, size, inputs, outputs)))

    def __call__(self, x):
        # at stride 2 "SAME" would pad only the end; at stride 1 it is equal and its gradient is faster
        edges = [self.edge, self.edge]
        padding = "SAME" if self.stride == 1 else [[0, 0], edges, edges, [0, 0]]
        return tf.nn.conv2d(x, tf.cast(self.weight, x.dtype), strides=self.stride, padding=padding)


class Normalisation(tf.Module):
    def __init__(self, task, channels):
        super().__init__()
        self.epsilon, self.rate = task.norm_epsilon, task.statistics
        self.weight = tf.Variable(tf.ones(channels))
        self.bias = tf.Variable(tf.zeros(channels))
        self.running_mean = make_statistic(channels, 0.0)
        self.running_var = make_statistic(channels, 1.0)

    def __call__(self, x, training):
        # the raw operation, because tf.compat.v1.nn.fused_batch_norm raises epsilon to 1.001e-5
        x, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
            x=x,
            scale=self.weight,
            offset=self.bias,
            mean=self.running_mean,
            variance=self.running_var,
            epsilon=self.epsilon,
            exponential_avg_factor=self.rate,
            is_training=training is not None,
        )
        if training is not None:
            self.running_mean.assign(mean)
            self.running_var.assign(variance)
        return x


def pool(x):
    # zero padding, because no value is below zero; the gradient of max_pool2d's explicit padding is ten times slower
    return tf.nn.max_pool2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), ksize=3, strides=2, padding="VALID")


class Layer(tf.Module):
    """Return the channels that a dense layer appends to its input."""

    def __init__(self, task, inputs):
        super().__init__()
        self.norm1 = Normalisation(task, inputs)
        self.conv1 = Convolution(inputs, 4 * task.growth, 1)
        self.norm2 = Normalisation(task, 4 * task.growth)
        self.conv2 = Convolution(4 * task.growth, task.growth, 3)

    def __call__(self, x, training):
        x = self.conv1(tf.nn.relu(self.norm1(x, training)))
        return self.conv2(tf.nn.relu(self.norm2(x, training)))


class Transition(tf.Module):
    def __init__(self, task, inputs, outputs):
        super().__init__()
        self.norm = Normalisation(task, inputs)
        self.conv = Convolution(inputs, outputs, 1)

    def __call__(self, x, training):
        x = self.conv(tf.nn.relu(self.norm(x, training)))
        return tf.nn.avg_pool2d(x, ksize=2, strides=2, padding="VALID")


class Stem(tf.Module):
    def __init__(self, task):
        super().__init__()
        self.conv = Convolution(3, 2 * task.growth, 7, 2)
        self.norm = Normalisation(task, 2 * task.growth)

    def __call__(self, x, training):
        return pool(tf.nn.relu(self.norm(self.conv(x), training)))


class DenseNet121(tf.Module):
    def __init__(self, task):
        super().__init__()
        self.task, self.stem = task, Stem(task)
        for name, inputs, channels, count in blocks(task):
            rows = [Layer(task, inputs + number * task.growth) for number in range(count)]
            setattr(self, name, rows if count else Transition(task, inputs, channels))
        self.norm = Normalisation(task, channels)
        self.classifier = Linear(channels, task.labels)

    def __call__(self, x, record, training=None):
        x = self.stem(tf.cast(x, self.task.dtype), training)  # (batch, 56, 56, 64)
        for name, _, _, count in blocks(self.task):
            part = getattr(self, name)
            if count == 0:
                x = record(name, part(x, training))
                continue
            for number, layer in enumerate(part):
                new = record("{}.{}".format(name, number), layer(x, training))
                x = tf.concat([x, new], axis=-1)
        x = tf.nn.relu(self.norm(x, training))  # (batch, 7, 7, 1024)
        x = tf.cast(tf.reduce_mean(tf.cast(x, tf.float32), (1, 2)), self.task.dtype)  # (batch, 1024)
        return tf.cast(self.classifier(x), tf.float32)  # (batch, 14)


class Recipe(TensorFlowRecipe):
    LAYOUT = "NHWC"

    def network(self, task):
        return DenseNet121(task)

    def loss(self, task, output, y):
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=output))

    def optimiser(self, net, task):
        return Adam(task, self.trained(net))

    def layout(self, name, array):
        if array.ndim == 4:
            return array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        return array.T if array.ndim == 2 else array
