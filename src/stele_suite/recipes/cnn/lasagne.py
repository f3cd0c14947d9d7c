"""CNN on CIFAR-10 in Lasagne: one Theano function per step, channels first, updates of shared variables."""

from functools import partial

import lasagne
from lasagne.layers import (
    Conv2DLayer,
    DenseLayer,
    DropoutLayer,
    InputLayer,
    MaxPool2DLayer,
    NonlinearityLayer,
)
from lasagne.nonlinearities import identity, rectify, softmax

from stele_worker.frameworks.lasagne.recipe import LasagneRecipe


def convolution(layer, name, channels, nonlinearity):
    # not pad="same", which crops a full convolution
    return Conv2DLayer(layer, channels, 3, stride=1, pad=1, nonlinearity=nonlinearity, name=name)


def pool(layer):
    return MaxPool2DLayer(layer, 2, stride=2, pad=0, ignore_border=True)


class Recipe(LasagneRecipe):
    LAYOUT = "NCHW"

    def network(self, task):
        net = InputLayer((None, 3, 32, 32))
        net = convolution(net, "conv1", 50, rectify)  # (batch, 50, 32, 32)
        net = pool(convolution(net, "conv2", 50, identity))  # (batch, 50, 16, 16)
        net = NonlinearityLayer(net, rectify)
        net = DropoutLayer(net, task.dropout[0], rescale=True)
        net = convolution(net, "conv3", 100, rectify)  # (batch, 100, 16, 16)
        net = pool(convolution(net, "conv4", 100, identity))  # (batch, 100, 8, 8)
        net = NonlinearityLayer(net, rectify)
        net = DropoutLayer(net, task.dropout[1], rescale=True)
        net = DenseLayer(net, 512, nonlinearity=rectify, name="dense1")  # from (batch, 6400)
        net = DropoutLayer(net, task.dropout[2], rescale=True)
        return DenseLayer(net, 10, nonlinearity=identity, name="dense2")  # (batch, 10)

    def loss(self, task, output, y):
        return lasagne.objectives.categorical_crossentropy(softmax(output), y).mean()

    def optimiser(self, net, task):
        return partial(lasagne.updates.momentum, learning_rate=task.learning_rate, momentum=task.momentum)

    def layout(self, name, array):
        if array.ndim == 4:
            return array[:, :, ::-1, ::-1]  # Theano computes a true convolution, not a cross-correlation
        return array.T if array.ndim == 2 else array  # (in, out)
