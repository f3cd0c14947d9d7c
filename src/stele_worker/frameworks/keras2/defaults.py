"""Keras 2 on its current backend."""

import inspect

# sets the variables that a backend reads at import
import stele_worker.frameworks.keras2.framework  # noqa: F401

import keras  # isort: skip
from keras import backend as K  # isort: skip
from keras import layers  # isort: skip

from stele_worker.defaults import distribution


def table():
    last = K.image_data_format() == "channels_last"
    dense = weights(layers.Dense(1000), (1000,))
    convolution = weights(layers.Conv2D(300, 3), (8, 8, 300) if last else (300, 8, 8))
    embedding = weights(layers.Embedding(1000, 1000), (5,))
    gru = weights(layers.GRU(400), (5, 500))
    norm = layers.BatchNormalization()
    return {
        "backend": K.backend(),
        "dense weight": distribution(dense[0], 1000),
        "dense bias": distribution(dense[1], 1000),
        "convolution weight": distribution(convolution[0], 2700),
        "convolution bias": distribution(convolution[1], 2700),
        "convolution padding": layers.Conv2D(1, 1).padding,
        "embedding": distribution(embedding[0], 1),
        "GRU input weight": distribution(gru[0], 500),
        "GRU hidden weight": distribution(gru[1], 400),
        "GRU biases": len(gru[2].shape),
        "GRU form": "reset after" if layers.GRU(1).reset_after else "reset before",
        "GRU recurrent activation": layers.GRU(1).recurrent_activation.__name__,
        "batch normalisation epsilon": norm.epsilon,
        "batch normalisation momentum": norm.momentum,
        "pool padding": layers.MaxPooling2D().padding,
        "SGD": optimiser(keras.optimizers.SGD, "learning_rate", "momentum", "nesterov"),
        "Adam": optimiser(keras.optimizers.Adam, "learning_rate", "beta_1", "beta_2", "amsgrad"),
        "Adam epsilon": keras.optimizers.Adam().epsilon,
        "cross-entropy from logits": argument(keras.losses.SparseCategoricalCrossentropy, "from_logits"),
        "image layout": K.image_data_format(),
        "default dtype": K.floatx(),
        "epsilon": K.epsilon(),
    }


def weights(layer, shape):
    """Return the initial weights of a layer for inputs of ``shape``."""
    model = keras.Sequential([keras.layers.InputLayer(shape), layer])
    return model.get_weights()


def argument(function, name):
    parameters = inspect.signature(function).parameters
    return parameters[name].default if name in parameters else None


def optimiser(kind, *names):
    return ", ".join("{} {}".format(name, argument(kind, name)) for name in names)
