"""MobileNetV2 in Keras 3: functional; Keras' documented loop, compiled where that is faster."""

import keras
from keras import layers, ops

from stele_suite.tasks.mobilenetv2 import HEAD, STEM, blocks
from stele_worker.frameworks.keras.images import channel_axis, image_input
from stele_worker.frameworks.keras.recipe import KerasRecipe, plain, set_policy


def unit(x, task, name, channels, size=1, stride=1):
    """Apply a convolution, depthwise if its name says so, and its batch normalisation."""
    padding = "same"
    if stride > 1:  # "same" would pad only the end
        x, padding = layers.ZeroPadding2D(size // 2)(x), "valid"
    options = {"strides": stride, "padding": padding, "use_bias": False, "name": plain(name) + "_conv"}
    if name.endswith("depthwise"):
        x = layers.DepthwiseConv2D(size, **options)(x)
    else:
        x = layers.Conv2D(channels, size, **options)(x)
    # Keras always updates the running variance by the biased variance, (n - 1) / n of the Task's. Training does not
    # use the running variance, so it computes the same
    options = {"momentum": 1 - task.statistics, "epsilon": task.epsilon, "name": plain(name) + "_norm"}
    return layers.BatchNormalization(channel_axis(), **options)(x)


def relu6(x):
    return layers.ReLU(max_value=6.0)(x)


def block(x, task, name, inputs, width, channels, stride):
    y = x if width == inputs else relu6(unit(x, task, name + ".expand", width))
    y = relu6(unit(y, task, name + ".depthwise", width, 3, stride))
    y = unit(y, task, name + ".project", channels)
    adds = stride == 1 and inputs == channels
    return layers.Add()([x, y]) if adds else y


class Recipe(KerasRecipe):
    LAYOUT = "NHWC"

    def network(self, task):
        set_policy(task)
        images, x = image_input(task.image, task)
        x = relu6(unit(x, task, "stem", STEM, 3, 2))  # (batch, 112, 112, 32)
        for name, *sizes in blocks():
            x = layers.Identity(name=name)(block(x, task, name, *sizes))
        x = relu6(unit(x, task, "head", HEAD))  # (batch, 7, 7, 1280)
        x = layers.Dropout(task.dropout[0])(layers.GlobalAveragePooling2D()(x))
        return keras.Model(images, layers.Dense(task.classes, dtype="float32", name="classifier")(x))

    def layers(self, task):
        return [name for name, *_ in blocks()]

    def loss(self, task, output, y):
        return ops.mean(keras.losses.sparse_categorical_crossentropy(y, output, from_logits=True))

    def optimiser(self, net, task):
        return keras.optimizers.SGD(task.learning_rate, momentum=task.momentum)

    def layout(self, name, array):
        if "depthwise" in name and array.ndim == 4:
            return array.transpose(2, 3, 0, 1)  # (height, width, channel, 1)
        return array.transpose(2, 3, 1, 0) if array.ndim == 4 else array.T  # (height, width, in, out)
