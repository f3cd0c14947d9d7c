"""ResNet-50 v1.5 in CNTK: its layers library, channels first, Trainer.train_minibatch."""

import math

import cntk as C
import numpy
from cntk import layers

from stele_worker.tasks.resnet50 import blocks, convolutions

LAYOUT = "NCHW"


def convolution(x, name, channels, size, stride):
    # pad=True centres the first window on the first pixel: it pads by size // 2 on every side
    window = (size, size)
    return layers.Convolution2D(window, channels, strides=stride, pad=True, bias=False, name=name)(x)


def normalisation(x, task, name):
    # a time constant in samples: after one batch the old statistics have the weight 1 - statistics
    constant = -task.batch / math.log(1 - task.statistics)
    return layers.BatchNormalization(
        map_rank=1,
        normalization_time_constant=constant,
        blend_time_constant=0,
        epsilon=task.epsilon,
        use_cntk_engine=True,  # not cuDNN
        name=name,
    )(x)


def bottleneck(x, task, name, inputs, width, stride):
    outputs = 4 * width
    shortcut = x
    if inputs != outputs:
        shortcut = convolution(x, name + ".downsample.0", outputs, 1, stride)
        shortcut = normalisation(shortcut, task, name + ".downsample.1")
    x = C.relu(normalisation(convolution(x, name + ".conv1", width, 1, 1), task, name + ".bn1"))
    x = C.relu(normalisation(convolution(x, name + ".conv2", width, 3, stride), task, name + ".bn2"))
    x = normalisation(convolution(x, name + ".conv3", outputs, 1, 1), task, name + ".bn3")
    return C.relu(x + shortcut)


def network(task):
    images = C.input_variable((3, task.image, task.image))
    x = C.relu(normalisation(convolution(images, "conv1", 64, 7, 2), task, "bn1"))  # (batch, 64, 112, 112)
    x = layers.MaxPooling((3, 3), strides=2, pad=True)(x)  # (batch, 64, 56, 56)
    for name, inputs, width, stride in blocks():
        x = bottleneck(x, task, name, inputs, width, stride)  # finally (batch, 2048, 7, 7)
    x = C.reshape(layers.GlobalAveragePooling()(x), task.features, name="features")  # (batch, 2048)
    return layers.Dense(task.classes, activation=None, bias=True, name="fc")(x)  # (batch, 1000)


def parameters(net):
    """Return the trainable parameters by neutral name."""
    arrays = {}
    for convolution, norm, _ in convolutions():
        arrays[convolution + ".weight"] = net.find_by_name(convolution).W
        arrays[norm + ".weight"] = net.find_by_name(norm).scale
        arrays[norm + ".bias"] = net.find_by_name(norm).bias
    arrays["fc.weight"], arrays["fc.bias"] = net.find_by_name("fc").W, net.find_by_name("fc").b
    return arrays


def load(net, weights):
    for name, parameter in parameters(net).items():
        array = weights[name]
        parameter.value = numpy.ascontiguousarray(array.T) if array.ndim == 2 else array  # (in, out)
    for _, norm, _ in convolutions():
        layer = net.find_by_name(norm)
        layer.aggregate_mean.value = weights[norm + ".running_mean"]
        layer.aggregate_variance.value = weights[norm + ".running_var"]
        layer.aggregate_count.value = numpy.ones(())  # at 0 the first batch would replace the statistics
    return net


def loss(net, task):
    """Return the loss of each image, a function of the images, and a variable for labels."""
    labels = C.input_variable(())
    return C.cross_entropy_with_softmax(net, C.one_hot(labels, task.classes)), labels


def output(net):
    return C.combine([net.find_by_name("features")])  # what inference computes


def training_step(net, task):
    losses, labels = loss(net, task)
    images = net.arguments[0]
    learner = C.momentum_sgd(
        net.parameters,
        lr=task.learning_rate,
        momentum=task.momentum,
        unit_gain=False,
        minibatch_size=C.learners.IGNORE,  # rates are per step, for the mean gradient, at any batch size
    )
    trainer = C.Trainer(None, losses, learner)

    def step(x, y):
        trainer.train_minibatch({images: x, labels: y})
        return trainer.previous_minibatch_loss_average

    return step


def stored(net):
    arrays = {name: parameter.value for name, parameter in parameters(net).items()}
    for _, norm, _ in convolutions():
        layer = net.find_by_name(norm)
        arrays[norm + ".running_mean"] = layer.aggregate_mean.value
        arrays[norm + ".running_var"] = layer.aggregate_variance.value
    return arrays


def neutral(name, array):
    return array.T if name == "fc.weight" else array
