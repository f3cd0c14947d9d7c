"""CNN on CIFAR-10 in Lasagne: one Theano function per step, channels first, updates of shared variables."""

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
from theano import tensor as T

from stele_worker.frameworks.lasagne import make_function

LAYOUT = "NCHW"


def convolution(layer, name, channels, nonlinearity):
    # not pad="same", which crops a full convolution
    return Conv2DLayer(layer, channels, 3, stride=1, pad=1, nonlinearity=nonlinearity, name=name)


def pool(layer):
    return MaxPool2DLayer(layer, 2, stride=2, pad=0, ignore_border=True)


def network(task):
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


def task_name(parameter):
    """Return the Task's name of a parameter."""
    return parameter.name.replace(".W", ".weight").replace(".b", ".bias")


def load(net, weights):
    for parameter in lasagne.layers.get_all_params(net):
        array = weights[task_name(parameter)]
        if array.ndim == 4:
            array = array[:, :, ::-1, ::-1]  # Theano computes a true convolution, not a cross-correlation
        parameter.set_value(array.T if array.ndim == 2 else array)  # (in, out)
    return net


def cross_entropy(net, x, y):
    logits = lasagne.layers.get_output(net, x, deterministic=False)
    return lasagne.objectives.categorical_crossentropy(softmax(logits), y).mean()


def gradients(net, task):
    x, y = T.tensor4(), T.ivector()
    parameters = lasagne.layers.get_all_params(net, trainable=True)
    loss = cross_entropy(net, x, y)
    differentiate = make_function([x, y], [loss] + T.grad(loss, parameters))

    def run(x, y):
        loss, *grads = differentiate(x, y)
        return loss, {task_name(parameter): grad for parameter, grad in zip(parameters, grads)}

    return run


def training_step(net, task):
    x, y = T.tensor4(), T.ivector()
    parameters = lasagne.layers.get_all_params(net, trainable=True)
    loss = cross_entropy(net, x, y)
    updates = lasagne.updates.momentum(
        loss, parameters, learning_rate=task.learning_rate, momentum=task.momentum
    )
    return make_function([x, y], loss, updates)


def inference_step(net, task):
    x = T.tensor4()
    return make_function([x], lasagne.layers.get_output(net, x, deterministic=True))


def stored(net):
    return {task_name(parameter): parameter.get_value() for parameter in lasagne.layers.get_all_params(net)}


def neutral(name, array):
    return array[:, :, ::-1, ::-1] if array.ndim == 4 else array.T
