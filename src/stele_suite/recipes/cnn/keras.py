"""CNN on CIFAR-10 in Keras 3: Sequential; Keras' documented loop, compiled where that is faster."""

import keras
from keras import layers, ops

from stele_worker.frameworks.keras.images import to_layout
from stele_worker.frameworks.keras.recipe import KerasRecipe, set_policy


class Recipe(KerasRecipe):
    LAYOUT = "NHWC"

    def network(self, task):
        set_policy(task)
        return keras.Sequential(
            [
                keras.Input((32, 32, 3)),
                *to_layout(task),
                layers.Conv2D(50, 3, padding="same", activation="relu", name="conv1_relu"),  # (batch, 32, 32, 50)
                layers.Conv2D(50, 3, padding="same", name="conv2"),
                layers.MaxPooling2D(2),  # (batch, 16, 16, 50)
                layers.ReLU(),
                layers.Dropout(task.dropout[0]),
                layers.Conv2D(100, 3, padding="same", activation="relu", name="conv3_relu"),  # (batch, 16, 16, 100)
                layers.Conv2D(100, 3, padding="same", name="conv4"),
                layers.MaxPooling2D(2),  # (batch, 8, 8, 100)
                layers.ReLU(),
                layers.Dropout(task.dropout[1]),
                layers.Flatten(),  # (batch, 6400)
                layers.Dense(512, activation="relu", name="dense1_relu"),
                layers.Dropout(task.dropout[2]),
                layers.Dense(10, dtype="float32", name="dense2"),  # (batch, 10)
            ]
        )

    def layers(self, task):
        return ("conv1.relu", "conv2", "conv3.relu", "conv4", "dense1.relu", "dense2")

    def loss(self, task, output, y):
        return ops.mean(keras.losses.sparse_categorical_crossentropy(y, output, from_logits=True))

    def optimiser(self, net, task):
        return keras.optimizers.SGD(task.learning_rate, momentum=task.momentum)

    def layout(self, name, array):
        if array.ndim == 4:
            return array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        if name == "dense1.weight":  # from channel, row, column to the order of flattening here
            array = array.reshape(512, 100, 8, 8).transpose(0, 2, 3, 1).reshape(512, 6400)
        return array.T

    def name_of(self, variable):
        return super().name_of(variable).replace(".relu", "")
