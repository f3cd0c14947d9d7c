"""ResNet-50 v1.5 in Keras 2: functional, train_on_batch and predict_on_batch; images in the backend's fast layout."""

import keras
import numpy
from keras import layers

from stele_suite.tasks.resnet50 import blocks
from stele_worker.frameworks.keras2 import framework
from stele_worker.frameworks.keras2.recipe import Keras2Recipe, kernel, set_training_phase


def convolution(x, name, channels, size, stride):
    padding = "same"
    if size > 1 and stride > 1:  # "same" would pad only the end
        x, padding = layers.ZeroPadding2D(size // 2)(x), "valid"
    return layers.Conv2D(
        channels,
        size,
        strides=stride,
        padding=padding,
        use_bias=False,
        kernel_initializer="zeros",  # load replaces it
        name=name,
    )(x)


def normalisation(x, task, name):
    # one float32 above the Task's epsilon: Theano rejects values below 1e-5, and so the float32 nearest to 1e-5;
    # TensorFlow's kernel for training raises it to 1.001e-5. The running variance, which training does not use,
    # is corrected to unbiased twice on TensorFlow and never on CNTK
    epsilon = float(numpy.nextafter(numpy.float32(task.epsilon), numpy.float32(1)))
    momentum = 1 - task.statistics
    return layers.BatchNormalization(axis=framework.AXIS, momentum=momentum, epsilon=epsilon, name=name)(x)


def relu(x, name=None):
    return layers.Activation("relu", name=name)(x)


def bottleneck(x, task, name, inputs, width, stride):
    outputs = 4 * width
    shortcut = x
    if inputs != outputs:
        shortcut = convolution(x, name + ".downsample.0", outputs, 1, stride)
        shortcut = normalisation(shortcut, task, name + ".downsample.1")
    x = relu(normalisation(convolution(x, name + ".conv1", width, 1, 1), task, name + ".bn1"))
    x = relu(normalisation(convolution(x, name + ".conv2", width, 3, stride), task, name + ".bn2"))
    x = normalisation(convolution(x, name + ".conv3", outputs, 1, 1), task, name + ".bn3")
    return relu(layers.add([x, shortcut]), name)


class Recipe(Keras2Recipe):
    LAYOUT = framework.LAYOUT

    def network(self, task):
        set_training_phase()
        size = (task.image, task.image)
        images = layers.Input(size + (3,) if self.LAYOUT == "NHWC" else (3,) + size)
        x = relu(normalisation(convolution(images, "conv1", 64, 7, 2), task, "bn1"))
        x = layers.ZeroPadding2D(1)(x)  # for the pool: after ReLU, zeros do not change a maximum
        x = layers.MaxPooling2D(3, strides=2, padding="valid", name="pool")(x)  # (batch, 56, 56, 64)
        for name, inputs, width, stride in blocks():
            x = bottleneck(x, task, name, inputs, width, stride)  # finally (batch, 7, 7, 2048)
        x = layers.GlobalAveragePooling2D(name="features")(x)  # (batch, 2048)
        classify = layers.Dense(task.classes, activation=None, use_bias=True, kernel_initializer="zeros", name="fc")
        return keras.Model(images, classify(x))  # (batch, 1000)

    def predict(self, net, task, images):
        return net.get_layer("features").output

    def layers(self, task):
        return ["pool"] + [name for name, *_ in blocks()]

    def loss(self, task, output, y):
        return keras.losses.sparse_categorical_crossentropy(y, output, from_logits=True)

    def optimiser(self, net, task):
        return keras.optimizers.SGD(task.learning_rate, momentum=task.momentum)

    def layout(self, name, array):
        return kernel(array) if array.ndim == 4 else array.T  # (in, out)
