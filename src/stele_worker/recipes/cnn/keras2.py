"""CNN on CIFAR-10 in Keras 2: Sequential, train_on_batch and predict_on_batch; images in the backend's fast layout."""

import keras
from keras import layers

from stele_worker.frameworks.keras2 import (
    LAYOUT,
    cross_entropy,
    kernel,
    make_inference_model,
    outputs,
    set_training_phase,
    weight,
)

SHAPE = (32, 32, 3) if LAYOUT == "NHWC" else (3, 32, 32)


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


def network(task):
    set_training_phase()
    return keras.Sequential(
        [
            convolution("conv1", 50, "relu", input_shape=SHAPE),  # (batch, 32, 32, 50)
            convolution("conv2", 50, None),
            layers.MaxPooling2D(2, strides=2, padding="valid"),  # (batch, 16, 16, 50)
            layers.Activation("relu"),
            layers.Dropout(task.dropout[0]),
            convolution("conv3", 100, "relu"),  # (batch, 16, 16, 100)
            convolution("conv4", 100, None),
            layers.MaxPooling2D(2, strides=2, padding="valid"),  # (batch, 8, 8, 100)
            layers.Activation("relu"),
            layers.Dropout(task.dropout[1]),
            # with channels_first it would move the channels last before flattening
            layers.Flatten(data_format="channels_last"),  # (batch, 6400)
            dense("dense1", 512, "relu"),
            layers.Dropout(task.dropout[2]),
            dense("dense2", 10, None),  # (batch, 10)
        ]
    )


NAMES = ("conv1", "conv2", "conv3", "conv4", "dense1", "dense2")
PARAMETERS = [name + kind for name in NAMES for kind in (".weight", ".bias")]


def load(net, weights):
    for name in NAMES:
        array = weights[name + ".weight"]
        if array.ndim == 4:
            array = kernel(array)
        else:
            if name == "dense1" and LAYOUT == "NHWC":  # its inputs are ordered row, column, channel
                array = array.reshape(512, 100, 8, 8).transpose(0, 2, 3, 1).reshape(512, 6400)
            array = array.T  # (in, out)
        net.get_layer(name).set_weights([array, weights[name + ".bias"]])
    return net


def named(net, values):
    return dict(zip(PARAMETERS, values))


def predictor(net):
    return make_inference_model(net, net.output)


def training_step(net, task):
    optimiser = keras.optimizers.SGD(task.learning_rate, momentum=task.momentum, nesterov=False, decay=0.0)
    net.compile(optimiser, cross_entropy)
    return net.train_on_batch


def stored(net):
    return dict(zip(PARAMETERS, net.get_weights()))


def neutral(name, array):
    if name == "dense1.weight" and LAYOUT == "NHWC":
        return array.T.reshape(512, 8, 8, 100).transpose(0, 3, 1, 2).reshape(512, 6400)
    return weight(array) if array.ndim == 4 else array.T


def activations(net, task):
    relus = {
        "conv1": "conv1.relu",
        "conv3": "conv3.relu",
        "dense1": "dense1.relu",
    }  # these layers include their ReLU
    return outputs(net, {name: relus.get(name, name) for name in NAMES}, make_inference_model)
