"""ResNet-50 v1.5 in MXNet's Gluon: NCHW."""

from mxnet import gluon
from mxnet.gluon import nn

from stele_suite.tasks.resnet50 import blocks
from stele_worker.frameworks.mxnet_gluon.recipe import GluonRecipe, relu, sgd


def convolution(name, inputs, outputs, size, stride):
    return nn.Conv2D(outputs, size, strides=stride, padding=size // 2, in_channels=inputs, use_bias=False, prefix=name)


def normalisation(task, name, channels):
    # MXNet always updates the running variance by the biased variance, (n - 1) / n of the Task's. Training does not use
    # it, so it computes the same
    return nn.BatchNorm(momentum=1 - task.statistics, epsilon=task.epsilon, in_channels=channels, prefix=name)


class Bottleneck(nn.HybridBlock):
    def __init__(self, task, name, inputs, width, stride):
        super().__init__(prefix=name)
        outputs = 4 * width
        with self.name_scope():
            self.conv1 = convolution("conv1.", inputs, width, 1, 1)
            self.bn1 = normalisation(task, "bn1.", width)
            self.conv2 = convolution("conv2.", width, width, 3, stride)
            self.bn2 = normalisation(task, "bn2.", width)
            self.conv3 = convolution("conv3.", width, outputs, 1, 1)
            self.bn3 = normalisation(task, "bn3.", outputs)
            self.downsample = None
            if inputs != outputs:
                self.downsample = nn.HybridSequential(prefix="downsample.")
                with self.downsample.name_scope():
                    self.downsample.add(convolution("0.", inputs, outputs, 1, stride))
                    self.downsample.add(normalisation(task, "1.", outputs))

    def hybrid_forward(self, F, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        x = relu(F, self.bn1(self.conv1(x)))
        x = relu(F, self.bn2(self.conv2(x)))
        return relu(F, self.bn3(self.conv3(x)) + shortcut)


class ResNet50(nn.HybridBlock):
    def __init__(self, task):
        super().__init__(prefix="")  # with the prefixes below, parameters have nearly the Task's names
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(convolution("conv1.", 3, 64, 7, 2), normalisation(task, "bn1.", 64))
            self.features.add(nn.Activation("relu"))
            self.features.add(nn.MaxPool2D(pool_size=3, strides=2, padding=1, ceil_mode=False))
            for name, inputs, width, stride in blocks():
                self.features.add(Bottleneck(task, name + ".", inputs, width, stride))
            self.features.add(nn.GlobalAvgPool2D(), nn.Flatten())  # (batch, 2048), from (batch, 2048, 7, 7)
            self.fc = nn.Dense(task.classes, in_units=task.features, use_bias=True, flatten=False, prefix="fc.")

    def hybrid_forward(self, F, x):  # (batch, 3, 224, 224)
        return self.fc(self.features(x))  # (batch, 1000)


class Recipe(GluonRecipe):
    LAYOUT = "NCHW"

    def network(self, task):
        return ResNet50(task)

    def body(self, net):
        return net.features

    def losses(self):
        return gluon.loss.SoftmaxCrossEntropyLoss()

    def optimiser(self, net, task):
        return sgd(net, task)
