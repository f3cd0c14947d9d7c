"""CNN on CIFAR-10 in CNTK: Sequential of its layers library, channels first, Trainer.train_minibatch."""

import cntk as C
import numpy
from cntk import layers

LAYOUT = "NCHW"


def convolution(name, channels, activation):
    return layers.Convolution2D((3, 3), channels, activation=activation, pad=True, bias=True, name=name)


def pool():
    return layers.MaxPooling((2, 2), strides=(2, 2), pad=False)


def network(task):
    net = layers.Sequential(
        [
            convolution("conv1", 50, C.relu),  # (batch, 50, 32, 32)
            convolution("conv2", 50, None),
            pool(),  # (batch, 50, 16, 16)
            C.relu,
            layers.Dropout(task.dropout[0]),
            convolution("conv3", 100, C.relu),  # (batch, 100, 16, 16)
            convolution("conv4", 100, None),
            pool(),  # (batch, 100, 8, 8)
            C.relu,
            layers.Dropout(task.dropout[1]),
            layers.Dense(
                512, activation=C.relu, bias=True, name="dense1"
            ),  # accepts (batch, 100, 8, 8) without flattening
            layers.Dropout(task.dropout[2]),
            layers.Dense(10, activation=None, bias=True, name="dense2"),  # (batch, 10)
        ]
    )
    return net(C.input_variable((3, 32, 32)))


NAMES = ("conv1", "conv2", "conv3", "conv4", "dense1", "dense2")


def parameters(net):
    layer = {name: net.find_by_name(name) for name in NAMES}
    kernels = {name + ".weight": layer[name].W for name in NAMES}
    return dict(kernels, **{name + ".bias": layer[name].b for name in NAMES})


def load(net, weights):
    for name, parameter in parameters(net).items():
        array = weights[name]
        if array.ndim == 2:
            array = numpy.ascontiguousarray(array.T)  # (in, out)
        parameter.value = array.reshape(parameter.shape)  # (100, 8, 8, 512), (50, 1, 1)
    return net


def loss(net, task):
    """Return the loss of each image, a function of the images, and a variable for labels."""
    labels = C.input_variable(())
    return C.cross_entropy_with_softmax(net, C.one_hot(labels, 10)), labels


def output(net):
    return net  # what inference computes


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
    return {name: parameter.value for name, parameter in parameters(net).items()}


def neutral(name, array):
    if name.endswith(".bias"):
        return array.ravel()  # from (50, 1, 1)
    return array.reshape(-1, array.shape[-1]).T if name.startswith("dense") else array
