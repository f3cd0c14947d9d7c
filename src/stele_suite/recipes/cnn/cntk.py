"""CNN on CIFAR-10 in CNTK: Sequential of its layers library, channels first, Trainer.train_minibatch."""

import cntk as C
from cntk import layers

from stele_worker.frameworks.cntk.recipe import CntkRecipe, sgd


def convolution(name, channels, activation):
    return layers.Convolution2D((3, 3), channels, activation=activation, pad=True, bias=True, name=name)


def pool():
    return layers.MaxPooling((2, 2), strides=(2, 2), pad=False)


class Recipe(CntkRecipe):
    LAYOUT = "NCHW"

    def network(self, task):
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
                # accepts (batch, 100, 8, 8) without flattening
                layers.Dense(512, activation=C.relu, bias=True, name="dense1"),
                layers.Dropout(task.dropout[2]),
                layers.Dense(10, activation=None, bias=True, name="dense2"),  # (batch, 10)
            ]
        )
        return net(C.input_variable((3, 32, 32)))

    def loss(self, task, output, y):
        return C.cross_entropy_with_softmax(output, C.one_hot(y, 10))

    def optimiser(self, net, task):
        return sgd(net, task)

    def layout(self, name, array):
        if array.ndim == 1 and name.startswith("conv"):
            return array.reshape(-1, 1, 1)  # a bias is added along the channels
        return array.T if array.ndim == 2 else array  # (in, out)
