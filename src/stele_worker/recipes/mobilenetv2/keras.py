"""MobileNetV2 in Keras 3: functional; Keras' documented loop, compiled where that is faster."""

import keras
from keras import layers

from stele_worker.frameworks.keras import cross_entropy, make_training_step, outputs, parameters, set_policy
from stele_worker.tasks.mobilenetv2 import HEAD, STEM, blocks

LAYOUT = "NHWC"


def plain(name):
    return name.replace(".", "_")  # PyTorch does not allow a dot in a name


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
    momentum = 1 - task.statistics
    return layers.BatchNormalization(momentum=momentum, epsilon=task.epsilon, name=plain(name) + "_norm")(x)


def relu6(x):
    return layers.ReLU(max_value=6.0)(x)


def block(x, task, name, inputs, width, channels, stride):
    y = x if width == inputs else relu6(unit(x, task, name + ".expand", width))
    y = relu6(unit(y, task, name + ".depthwise", width, 3, stride))
    y = unit(y, task, name + ".project", channels)
    adds = stride == 1 and inputs == channels
    return layers.Add()([x, y]) if adds else y


def network(task):
    set_policy(task)
    images = keras.Input((task.image, task.image, 3))
    x = relu6(unit(images, task, "stem", STEM, 3, 2))  # (batch, 112, 112, 32)
    for name, *sizes in blocks():
        x = layers.Identity(name=name)(block(x, task, name, *sizes))
    x = relu6(unit(x, task, "head", HEAD))  # (batch, 7, 7, 1280)
    x = layers.Dropout(task.dropout[0])(layers.GlobalAveragePooling2D()(x))
    return keras.Model(images, layers.Dense(task.classes, dtype="float32", name="classifier")(x))


KINDS = {
    "kernel": ".weight",
    "gamma": ".weight",
    "beta": ".bias",
    "bias": ".bias",
    "moving_mean": ".running_mean",
    "moving_variance": ".running_var",
}


def task_names(variables):
    """Return the Task's name of each variable."""
    paths = [variable.path.split("/")[-2:] for variable in variables]
    return [layer.replace("_", ".") + KINDS[kind] for layer, kind in paths]


def named(variables, values):
    return dict(zip(task_names(variables), values))


def load(net, weights):
    for variable, name in zip(net.weights, task_names(net.weights)):
        array = weights[name]
        if name.endswith("depthwise.conv.weight"):
            array = array.transpose(2, 3, 0, 1)  # (height, width, channel, 1)
        elif array.ndim == 4:
            array = array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        variable.assign(array.T if array.ndim == 2 else array)
    return net


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
    if name.endswith("depthwise.conv.weight"):
        return array.transpose(2, 3, 0, 1)
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T


def activations(net, task):
    return outputs(net, {name: name for name, *_ in blocks()})
