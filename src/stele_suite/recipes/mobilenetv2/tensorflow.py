"""MobileNetV2 in TensorFlow: one tf.function per step, channels last, oneDNN or cuDNN rather than XLA."""

import tensorflow as tf

from stele_suite.tasks.mobilenetv2 import HEAD, STEM, blocks
from stele_worker.frameworks.tensorflow.recipe import SGD, Linear, TensorFlowRecipe, dropout, make_statistic


class Convolution(tf.Module):
    def __init__(self, inputs, outputs, size, stride):
        super().__init__()
        self.stride, self.edge = stride, size // 2
        self.weight = tf.Variable(tf.zeros((size, size, inputs, outputs)))

    def __call__(self, x):
        # at stride 2 "SAME" would pad only the end; at stride 1 it is equal and its gradient is faster
        edges = [self.edge, self.edge]
        padding = "SAME" if self.stride == 1 else [[0, 0], edges, edges, [0, 0]]
        return tf.nn.conv2d(x, tf.cast(self.weight, x.dtype), strides=self.stride, padding=padding)


class Depthwise(tf.Module):
    def __init__(self, channels, stride):
        super().__init__()
        self.stride = stride
        self.weight = tf.Variable(tf.zeros((3, 3, channels, 1)))

    def __call__(self, x):
        if self.stride > 1:  # "SAME" would pad only the end
            x = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])
        padding, strides = "SAME" if self.stride == 1 else "VALID", (1, self.stride, self.stride, 1)
        return tf.nn.depthwise_conv2d(x, tf.cast(self.weight, x.dtype), strides=strides, padding=padding)


class Normalisation(tf.Module):
    def __init__(self, task, channels):
        super().__init__()
        self.epsilon, self.rate = task.epsilon, task.statistics
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


class Unit(tf.Module):
    """A convolution and its batch normalisation."""

    def __init__(self, task, convolution, channels):
        super().__init__()
        self.conv, self.norm = convolution, Normalisation(task, channels)

    def __call__(self, x, training):
        return self.norm(self.conv(x), training)


class Block(tf.Module):
    def __init__(self, task, inputs, width, outputs, stride):
        super().__init__()
        self.adds = stride == 1 and inputs == outputs
        self.expand = Unit(task, Convolution(inputs, width, 1, 1), width) if width != inputs else None
        self.depthwise = Unit(task, Depthwise(width, stride), width)
        self.project = Unit(task, Convolution(width, outputs, 1, 1), outputs)

    def __call__(self, x, training):
        y = x if self.expand is None else tf.nn.relu6(self.expand(x, training))
        y = self.project(tf.nn.relu6(self.depthwise(y, training)), training)
        return x + y if self.adds else y


class MobileNetV2(tf.Module):
    def __init__(self, task):
        super().__init__()
        self.rate, self.dtype = task.dropout[0], task.dtype
        self.stem = Unit(task, Convolution(3, STEM, 3, 2), STEM)
        for name, *sizes in blocks():
            setattr(self, name, Block(task, *sizes))
            channels = sizes[2]
        self.head = Unit(task, Convolution(channels, HEAD, 1, 1), HEAD)
        self.classifier = Linear(HEAD, task.classes)

    def __call__(self, x, record, training=None):
        x = tf.cast(x, self.dtype)  # (batch, 224, 224, 3)
        x = tf.nn.relu6(self.stem(x, training))  # (batch, 112, 112, 32)
        for name, *_ in blocks():
            x = record(name, getattr(self, name)(x, training))
        x = tf.nn.relu6(self.head(x, training))  # (batch, 7, 7, 1280)
        x = tf.reduce_mean(tf.cast(x, tf.float32), (1, 2))
        x = tf.cast(dropout(x, self.rate, training), self.dtype)
        return tf.cast(self.classifier(x), tf.float32)  # (batch, 1000)


class Recipe(TensorFlowRecipe):
    LAYOUT = "NHWC"

    def network(self, task):
        return MobileNetV2(task)

    def loss(self, task, output, y):
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=output))

    def optimiser(self, net, task):
        return SGD(task, self.trained(net))

    def layout(self, name, array):
        if name.endswith("depthwise.conv.weight"):
            return array.transpose(2, 3, 0, 1)  # (height, width, in, out per in)
        if array.ndim == 4:
            return array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        return array.T if array.ndim == 2 else array
