"""ResNet-50 v1.5 in TensorFlow: one tf.function per step, channels last, oneDNN or cuDNN rather than XLA."""

import tensorflow as tf

from stele_suite.tasks.resnet50 import blocks
from stele_worker.frameworks.tensorflow.recipe import SGD, Linear, TensorFlowRecipe, make_statistic


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


def pool(x):
    # zero padding, because no value is below zero; the gradient of max_pool2d's explicit padding is ten times slower
    return tf.nn.max_pool2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), ksize=3, strides=2, padding="VALID")


class Bottleneck(tf.Module):
    def __init__(self, task, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1 = Convolution(inputs, width, 1)
        self.bn1 = Normalisation(task, width)
        self.conv2 = Convolution(width, width, 3, stride)
        self.bn2 = Normalisation(task, width)
        self.conv3 = Convolution(width, outputs, 1)
        self.bn3 = Normalisation(task, outputs)
        self.downsample = []
        if inputs != outputs:
            self.downsample = [Convolution(inputs, outputs, 1, stride), Normalisation(task, outputs)]

    def __call__(self, x, training):
        shortcut = x
        if self.downsample:
            convolution, normalisation = self.downsample
            shortcut = normalisation(convolution(x), training)
        x = tf.nn.relu(self.bn1(self.conv1(x), training))
        x = tf.nn.relu(self.bn2(self.conv2(x), training))
        return tf.nn.relu(self.bn3(self.conv3(x), training) + shortcut)


class ResNet50(tf.Module):
    def __init__(self, task):
        super().__init__()
        self.dtype = task.dtype
        self.conv1 = Convolution(3, 64, 7, 2)
        self.bn1 = Normalisation(task, 64)
        for stage in range(1, 5):
            rows = [row[1:] for row in blocks() if row[0].startswith("layer{}.".format(stage))]
            setattr(self, "layer{}".format(stage), [Bottleneck(task, *row) for row in rows])
        self.fc = Linear(task.features, task.classes)

    def features(self, x, record, training=None):
        x = tf.cast(x, self.dtype)  # (batch, 224, 224, 3)
        x = pool(tf.nn.relu(self.bn1(self.conv1(x), training)))  # (batch, 56, 56, 64)
        for stage, layer in enumerate((self.layer1, self.layer2, self.layer3, self.layer4), 1):
            for number, block in enumerate(layer):
                x = record("layer{}.{}".format(stage, number), block(x, training))
        return tf.reduce_mean(tf.cast(x, tf.float32), (1, 2))  # (batch, 2048), from (batch, 7, 7, 2048)

    def __call__(self, x, record, training=None):
        x = tf.cast(self.features(x, record, training), self.dtype)
        return tf.cast(self.fc(x), tf.float32)  # (batch, 1000)


class Recipe(TensorFlowRecipe):
    LAYOUT = "NHWC"

    def network(self, task):
        return ResNet50(task)

    def predict(self, net, task, x):
        return net.features(x, self.record)

    def loss(self, task, output, y):
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=output))

    def optimiser(self, net, task):
        return SGD(task, self.trained(net))

    def layout(self, name, array):
        if array.ndim == 4:
            return array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        return array.T if array.ndim == 2 else array
