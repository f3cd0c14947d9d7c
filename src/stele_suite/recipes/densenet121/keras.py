"""DenseNet-121 in Keras 3: functional; Keras' documented loop, compiled where that is faster."""

import keras
from keras import layers, ops

from stele_suite.tasks.densenet121 import blocks
from stele_suite.tasks.densenet121 import layers as layer_names
from stele_worker.frameworks.keras.images import channel_axis, image_input
from stele_worker.frameworks.keras.recipe import KerasRecipe, adam, plain, set_policy


def convolution(x, name, channels, size, stride=1):
    padding = "same"
    if stride > 1:  # "same" would pad only the end
        x, padding = layers.ZeroPadding2D(size // 2)(x), "valid"
    return layers.Conv2D(channels, size, strides=stride, padding=padding, use_bias=False, name=plain(name))(x)


def activated(x, task, name):
    # Keras always updates the running variance by the biased variance, (n - 1) / n of the Task's. Training does not
    # use the running variance, so it computes the same
    options = {"momentum": 1 - task.statistics, "epsilon": task.norm_epsilon, "name": plain(name)}
    return layers.ReLU()(layers.BatchNormalization(channel_axis(), **options)(x))


def layer(x, task, name):
    """Return the channels that a dense layer appends to its input."""
    x = convolution(activated(x, task, name + ".norm1"), name + ".conv1", 4 * task.growth, 1)
    x = convolution(activated(x, task, name + ".norm2"), name + ".conv2", task.growth, 3)
    return layers.Identity(name=plain(name))(x)


def transition(x, task, name, outputs):
    x = convolution(activated(x, task, name + ".norm"), name + ".conv", outputs, 1)
    return layers.AveragePooling2D(2, name=plain(name))(x)


def block(x, task, name, outputs, count):
    for number in range(count):
        x = layers.Concatenate(channel_axis())([x, layer(x, task, "{}.{}".format(name, number))])
    return x if count else transition(x, task, name, outputs)


class Recipe(KerasRecipe):
    LAYOUT = "NHWC"

    def network(self, task):
        set_policy(task)
        images, x = image_input(task.image, task)
        x = activated(convolution(x, "stem.conv", 2 * task.growth, 7, 2), task, "stem.norm")
        x = layers.ZeroPadding2D(1)(x)  # for the pool: after ReLU, zeros do not change a maximum
        x = layers.MaxPooling2D(3, strides=2, padding="valid")(x)  # (batch, 56, 56, 64)
        for name, _, channels, count in blocks(task):
            x = block(x, task, name, channels, count)
        x = layers.GlobalAveragePooling2D()(activated(x, task, "norm"))  # (batch, 1024)
        return keras.Model(images, layers.Dense(task.labels, dtype="float32", name="classifier")(x))

    def layers(self, task):
        return [name for name, _ in layer_names(task)]

    def loss(self, task, output, y):
        return ops.mean(keras.losses.binary_crossentropy(y, output, from_logits=True))

    def optimiser(self, net, task):
        return adam(task)

    def layout(self, name, array):
        return array.transpose(2, 3, 1, 0) if array.ndim == 4 else array.T  # (height, width, in, out)
