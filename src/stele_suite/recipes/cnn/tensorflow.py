"""CNN on CIFAR-10 in TensorFlow: one tf.function per step, channels last, oneDNN or cuDNN rather than XLA."""

import tensorflow as tf

from stele_worker.frameworks.tensorflow.recipe import SGD, Linear, TensorFlowRecipe, dropout


class Convolution(tf.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = tf.Variable(tf.zeros((3, 3, inputs, outputs)))
        self.bias = tf.Variable(tf.zeros(outputs))

    def __call__(self, x):
        kernel, bias = tf.cast(self.weight, x.dtype), tf.cast(self.bias, x.dtype)
        x = tf.nn.conv2d(x, kernel, strides=1, padding="SAME")  # at stride 1 this pads by 1 on every side
        return tf.nn.bias_add(x, bias)


def pool(x):
    return tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID")


class CNN(tf.Module):
    def __init__(self, task):
        super().__init__()
        self.rates, self.dtype = task.dropout, task.dtype
        self.conv1 = Convolution(3, 50)
        self.conv2 = Convolution(50, 50)
        self.conv3 = Convolution(50, 100)
        self.conv4 = Convolution(100, 100)
        self.dense1 = Linear(6400, 512)
        self.dense2 = Linear(512, 10)

    def __call__(self, x, record, training=None):
        x = tf.cast(x, self.dtype)  # (batch, 32, 32, 3)
        x = tf.nn.relu(record("conv1", self.conv1(x)))  # (batch, 32, 32, 50)
        x = tf.nn.relu(pool(record("conv2", self.conv2(x))))  # (batch, 16, 16, 50)
        x = dropout(x, self.rates[0], training)
        x = tf.nn.relu(record("conv3", self.conv3(x)))  # (batch, 16, 16, 100)
        x = tf.nn.relu(pool(record("conv4", self.conv4(x))))  # (batch, 8, 8, 100)
        x = dropout(x, self.rates[1], training)
        x = tf.reshape(x, (-1, 6400))
        x = dropout(tf.nn.relu(record("dense1", self.dense1(x))), self.rates[2], training)
        return tf.cast(record("dense2", self.dense2(x)), tf.float32)  # (batch, 10)


class Recipe(TensorFlowRecipe):
    LAYOUT = "NHWC"

    def network(self, task):
        return CNN(task)

    def loss(self, task, output, y):
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=output))

    def optimiser(self, net, task):
        return SGD(task, self.trained(net))

    def layout(self, name, array):
        if array.ndim == 4:
            return array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        if name == "dense1.weight":  # from channel, row, column to the order of flattening here
            array = array.reshape(512, 100, 8, 8).transpose(0, 2, 3, 1).reshape(512, 6400)
        return array.T if array.ndim == 2 else array
