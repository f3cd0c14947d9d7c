"""ResNet-50 v1.5 in CNTK: its layers library, channels first, Trainer.train_minibatch."""

import math

import cntk as C
import numpy
from cntk import layers

from stele_suite.tasks.resnet50 import blocks, convolutions
from stele_worker.frameworks.cntk.recipe import CntkRecipe, sgd


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


class Recipe(CntkRecipe):
    LAYOUT = "NCHW"

    def network(self, task):
        images = C.input_variable((3, task.image, task.image))
        x = C.relu(normalisation(convolution(images, "conv1", 64, 7, 2), task, "bn1"))  # (batch, 64, 112, 112)
        x = layers.MaxPooling((3, 3), strides=2, pad=True)(x)  # (batch, 64, 56, 56)
        for name, inputs, width, stride in blocks():
            x = bottleneck(x, task, name, inputs, width, stride)  # finally (batch, 2048, 7, 7)
        x = C.reshape(layers.GlobalAveragePooling()(x), task.features, name="features")  # (batch, 2048)
        return layers.Dense(task.classes, activation=None, bias=True, name="fc")(x)  # (batch, 1000)

    def assign(self, net, arrays):
        for _, norm, _ in convolutions():
            # at 0 the first batch would replace the statistics
            net.find_by_name(norm).aggregate_count.value = numpy.ones(())
        return super().assign(net, arrays)

    def predict(self, net, task):
        return C.combine([net.find_by_name("features")])

    def loss(self, task, output, y):
        return C.cross_entropy_with_softmax(output, C.one_hot(y, task.classes))

    def optimiser(self, net, task):
        return sgd(net, task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 else array  # (in, out)
