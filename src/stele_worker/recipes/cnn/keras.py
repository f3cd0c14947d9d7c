"""CNN on CIFAR-10 in Keras 3: Sequential; Keras' documented loop, compiled where that is faster."""

import keras
from keras import layers

from stele_worker.frameworks.keras import cross_entropy, make_training_step, outputs, parameters, set_policy
from stele_worker.images.keras import to_layout

LAYOUT = "NHWC"


def convolution(name, channels, activation):
    return layers.Conv2D(channels, 3, padding="same", activation=activation, use_bias=True, name=name)


def network(task):
    set_policy(task)
    return keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            *to_layout(task),
            convolution("conv1", 50, "relu"),  # (batch, 32, 32, 50)
            convolution("conv2", 50, None),
            layers.MaxPooling2D(2, strides=2, padding="valid"),  # (batch, 16, 16, 50)
            layers.ReLU(),
            layers.Dropout(task.dropout[0]),
            convolution("conv3", 100, "relu"),  # (batch, 16, 16, 100)
            convolution("conv4", 100, None),
            layers.MaxPooling2D(2, strides=2, padding="valid"),  # (batch, 8, 8, 100)
            layers.ReLU(),
            layers.Dropout(task.dropout[1]),
            layers.Flatten(),  # (batch, 6400)
            layers.Dense(512, activation="relu", name="dense1"),
            layers.Dropout(task.dropout[2]),
            layers.Dense(10, dtype="float32", name="dense2"),  # (batch, 10)
        ]
    )


NAMES = ("conv1", "conv2", "conv3", "conv4", "dense1", "dense2")
PARAMETERS = [name + kind for name in NAMES for kind in (".weight", ".bias")]


def load(net, weights):
    for name in NAMES:
        kernel = weights[name + ".weight"]
        if kernel.ndim == 4:
            kernel = kernel.transpose(2, 3, 1, 0)  # (height, width, in, out)
        elif name == "dense1":  # its inputs are ordered row, column, channel
            kernel = kernel.reshape(512, 100, 8, 8).transpose(2, 3, 1, 0).reshape(6400, 512)
        else:
            kernel = kernel.T  # (in, out)
        net.get_layer(name).set_weights([kernel, weights[name + ".bias"]])
    return net


def named(variables, values):
    return dict(zip(PARAMETERS, values))


def output(net):
    return net.outputs[0]  # of the inference


def training_step(net, task):
    optimiser = keras.optimizers.SGD(
        task.learning_rate, momentum=task.momentum, nesterov=False, weight_decay=None
    )
    return make_training_step(net, optimiser, cross_entropy())


def stored(net):
    return named(net.weights, parameters(net))


def neutral(name, array):
    if name == "dense1.weight":
        return array.T.reshape(512, 8, 8, 100).transpose(0, 3, 1, 2).reshape(512, 6400)
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T


def activations(net, task):
    relus = {
        "conv1": "conv1.relu",
        "conv3": "conv3.relu",
        "dense1": "dense1.relu",
    }  # these layers include their ReLU
    return outputs(net, {name: relus.get(name, name) for name in NAMES})
