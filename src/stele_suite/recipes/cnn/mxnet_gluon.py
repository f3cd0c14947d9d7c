"""CNN on CIFAR-10 in MXNet's Gluon: NCHW."""

from mxnet import gluon
from mxnet.gluon import nn

from stele_worker.frameworks.mxnet_gluon.recipe import GluonRecipe, relu, sgd


def convolution(name, inputs, outputs):
    return nn.Conv2D(outputs, kernel_size=3, strides=1, padding=1, in_channels=inputs, use_bias=True, prefix=name)


class CNN(nn.HybridBlock):
    def __init__(self, task):
        super().__init__(prefix="")  # with the prefixes below, parameters have the Task's names
        with self.name_scope():
            self.conv1 = convolution("conv1.", 3, 50)
            self.conv2 = convolution("conv2.", 50, 50)
            self.conv3 = convolution("conv3.", 50, 100)
            self.conv4 = convolution("conv4.", 100, 100)
            self.pool = nn.MaxPool2D(pool_size=2, strides=2, padding=0, ceil_mode=False)
            self.drop2, self.drop4, self.drop5 = [nn.Dropout(rate) for rate in task.dropout]
            self.dense1 = nn.Dense(512, in_units=6400, use_bias=True, flatten=True, prefix="dense1.")
            self.dense2 = nn.Dense(10, in_units=512, use_bias=True, flatten=False, prefix="dense2.")

    def hybrid_forward(self, F, x):  # (batch, 3, 32, 32)
        x = relu(F, self.conv1(x))  # (batch, 50, 32, 32)
        x = relu(F, self.pool(self.conv2(x)))  # (batch, 50, 16, 16)
        x = self.drop2(x)
        x = relu(F, self.conv3(x))  # (batch, 100, 16, 16)
        x = relu(F, self.pool(self.conv4(x)))  # (batch, 100, 8, 8)
        x = self.drop4(x)
        x = relu(F, self.dense1(x))  # (batch, 512), from (batch, 6400)
        return self.dense2(self.drop5(x))  # (batch, 10)


class Recipe(GluonRecipe):
    LAYOUT = "NCHW"

    def network(self, task):
        return CNN(task)

    def losses(self):
        return gluon.loss.SoftmaxCrossEntropyLoss()

    def optimiser(self, net, task):
        return sgd(net, task)
