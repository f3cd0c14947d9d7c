"""CNN on CIFAR-10 in MXNet's symbols: a Module, NCHW."""

import mxnet as mx

from stele_worker.frameworks.mxnet_module.recipe import ModuleRecipe, Network, sgd


def convolution(x, name, channels):
    weight, bias = mx.sym.var(name + ".weight"), mx.sym.var(name + ".bias")
    return mx.sym.Convolution(x, weight, bias, kernel=(3, 3), stride=(1, 1), pad=(1, 1), num_filter=channels)


def pool(x):
    return mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pad=(0, 0), pool_type="max", pooling_convention="valid")


def dense(x, name, outputs):
    weight, bias = mx.sym.var(name + ".weight"), mx.sym.var(name + ".bias")
    return mx.sym.FullyConnected(x, weight, bias, num_hidden=outputs, flatten=True)


class Recipe(ModuleRecipe):
    LAYOUT = "NCHW"

    def network(self, task):
        x = mx.sym.var("x")  # (batch, 3, 32, 32)
        # not Activation: oneDNN fuses it with the convolution, and for these channels that takes 4 % longer
        x = mx.sym.relu(convolution(x, "conv1", 50))  # (batch, 50, 32, 32)
        x = mx.sym.relu(pool(convolution(x, "conv2", 50)))  # (batch, 50, 16, 16)
        x = mx.sym.Dropout(x, p=task.dropout[0], mode="training")
        x = mx.sym.relu(convolution(x, "conv3", 100))  # (batch, 100, 16, 16)
        x = mx.sym.relu(pool(convolution(x, "conv4", 100)))  # (batch, 100, 8, 8)
        x = mx.sym.Dropout(x, p=task.dropout[1], mode="training")
        x = mx.sym.relu(dense(x, "dense1", 512))  # (batch, 512), from (batch, 6400)
        x = mx.sym.Dropout(x, p=task.dropout[2], mode="training")
        return Network(dense(x, "dense2", 10))  # (batch, 10)

    def optimiser(self, net, task):
        return sgd(task)
