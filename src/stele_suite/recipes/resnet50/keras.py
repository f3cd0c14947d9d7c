"""ResNet-50 v1.5 in Keras 3: functional; Keras' documented loop, compiled where that is faster."""

import keras
from keras import layers, ops

from stele_suite.tasks.resnet50 import blocks
from stele_worker.frameworks.keras.images import channel_axis, image_input
from stele_worker.frameworks.keras.recipe import KerasRecipe, plain, set_policy


def convolution(x, name, channels, size, stride):
    padding = "same"
    if size > 1 and stride > 1:  # "same" would pad only the end
        x, padding = layers.ZeroPadding2D(size // 2)(x), "valid"
    return layers.Conv2D(channels, size, strides=stride, padding=padding, use_bias=False, name=plain(name))(x)


def normalisation(x, task, name):
    # Keras always updates the running variance by the biased variance, (n - 1) / n of the Task's; n is at
    # least 392 at a batch of 8. Training does not use the running variance, so it computes the same
    options = {"momentum": 1 - task.statistics, "epsilon": task.epsilon, "name": plain(name)}
    return layers.BatchNormalization(channel_axis(), **options)(x)


def bottleneck(x, task, name, inputs, width, stride):
    outputs = 4 * width
    shortcut = x
    if inputs != outputs:
        shortcut = convolution(x, name + ".downsample.0", outputs, 1, stride)
        shortcut = normalisation(shortcut, task, name + ".downsample.1")
    x = layers.ReLU()(normalisation(convolution(x, name + ".conv1", width, 1, 1), task, name + ".bn1"))
    x = layers.ReLU()(normalisation(convolution(x, name + ".conv2", width, 3, stride), task, name + ".bn2"))
    x = normalisation(convolution(x, name + ".conv3", outputs, 1, 1), task, name + ".bn3")
    return layers.ReLU(name=plain(name))(layers.Add()([x, shortcut]))


class Recipe(KerasRecipe):
    LAYOUT = "NHWC"

    def network(self, task):
        set_policy(task)
        images, x = image_input(task.image, task)
        x = layers.ReLU()(normalisation(convolution(x, "conv1", 64, 7, 2), task, "bn1"))
        x = layers.ZeroPadding2D(1)(x)  # for the pool: after ReLU, zeros do not change a maximum
        x = layers.MaxPooling2D(3, strides=2, padding="valid", name="pool")(x)  # (batch, 56, 56, 64)
        for name, inputs, width, stride in blocks():
            x = bottleneck(x, task, name, inputs, width, stride)  # finally (batch, 7, 7, 2048)
        x = layers.GlobalAveragePooling2D(dtype="float32", name="features")(x)  # (batch, 2048)
        return keras.Model(images, layers.Dense(task.classes, dtype="float32", name="fc")(x))  # (batch, 1000)

    def predict(self, net, task, images):
        return net.get_layer("features").output

    def layers(self, task):
        return ["pool"] + [name for name, *_ in blocks()]

    def loss(self, task, output, y):
        return ops.mean(keras.losses.sparse_categorical_crossentropy(y, output, from_logits=True))

    def optimiser(self, net, task):
        return keras.optimizers.SGD(task.learning_rate, momentum=task.momentum)

    def layout(self, name, array):
        return array.transpose(2, 3, 1, 0) if array.ndim == 4 else array.T  # (height, width, in, out)
