"""CNN on CIFAR-10 in Keras 2: Sequential, train_on_batch and predict_on_batch; images in the backend's fast layout."""

import keras
from keras import layers

from stele_worker.frameworks.keras2 import framework
from stele_worker.frameworks.keras2.recipe import Keras2Recipe, kernel, set_training_phase

SHAPE = (32, 32, 3) if framework.LAYOUT == "NHWC" else (3, 32, 32)


def convolution(name, channels, activation, **first):
    return layers.Conv2D(
        channels,
        3,
        strides=1,
        padding="same",
        activation=activation,
        use_bias=True,
        kernel_initializer="zeros",  # load replaces it
        name=name,
        **first,
    )


def dense(name, units, activation):
    return layers.Dense(units, activation=activation, use_bias=True, kernel_initializer="zeros", name=name)


class Recipe(Keras2Recipe):
    LAYOUT = framework.LAYOUT

    def network(self, task):
        set_training_phase()
        return keras.Sequential(
            [
                convolution("conv1.relu", 50, "relu", input_shape=SHAPE),  # (batch, 32, 32, 50)
                convolution("conv2", 50, None),
                layers.MaxPooling2D(2, strides=2, padding="valid"),  # (batch, 16, 16, 50)
                layers.Activation("relu"),
                layers.Dropout(task.dropout[0]),
                convolution("conv3.relu", 100, "relu"),  # (batch, 16, 16, 100)
                convolution("conv4", 100, None),
                layers.MaxPooling2D(2, strides=2, padding="valid"),  # (batch, 8, 8, 100)
                layers.Activation("relu"),
                layers.Dropout(task.dropout[1]),
                # with channels_first it would move the channels last before flattening
                layers.Flatten(data_format="channels_last"),  # (batch, 6400)
                dense("dense1.relu", 512, "relu"),
                layers.Dropout(task.dropout[2]),
                dense("dense2", 10, None),  # (batch, 10)
            ]
        )

    def layers(self, task):
        return ("conv1.relu", "conv2", "conv3.relu", "conv4", "dense1.relu", "dense2")

    def loss(self, task, output, y):
        return keras.losses.sparse_categorical_crossentropy(y, output, from_logits=True)

    def optimiser(self, net, task):
        return keras.optimizers.SGD(task.learning_rate, momentum=task.momentum)

    def layout(self, name, array):
        if array.ndim == 4:
            return kernel(array)
        if name == "dense1.weight" and self.LAYOUT == "NHWC":  # its inputs are ordered row, column, channel
            array = array.reshape(512, 100, 8, 8).transpose(0, 2, 3, 1).reshape(512, 6400)
        return array.T  # (in, out)

    def name_of(self, layer):
        return layer.name.replace(".relu", "")
