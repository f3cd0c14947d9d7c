"""DenseNet-121 in Chainer: define-by-run, NCHW."""

import chainer
import chainer.functions as F
import chainer.links as L

from stele_suite.tasks.densenet121 import blocks, layers
from stele_worker.frameworks.chainer.recipe import ChainerRecipe, adam


def convolution(inputs, outputs, size, stride=1):
    return L.Convolution2D(inputs, outputs, ksize=size, stride=stride, pad=size // 2, nobias=True)


def normalisation(task, channels):
    return L.BatchNormalization(channels, decay=1 - task.statistics, eps=task.norm_epsilon)


class Layer(chainer.Chain):
    """Return the channels that a dense layer appends to its input."""

    def __init__(self, task, inputs):
        super().__init__()
        with self.init_scope():
            self.norm1 = normalisation(task, inputs)
            self.conv1 = convolution(inputs, 4 * task.growth, 1)
            self.norm2 = normalisation(task, 4 * task.growth)
            self.conv2 = convolution(4 * task.growth, task.growth, 3)

    def forward(self, x):
        return self.conv2(F.relu(self.norm2(self.conv1(F.relu(self.norm1(x))))))


class Block(chainer.ChainList):
    def forward(self, x):
        for layer in self:
            x = F.concat((x, layer(x)), axis=1)
        return x


class Transition(chainer.Chain):
    def __init__(self, task, inputs, outputs):
        super().__init__()
        with self.init_scope():
            self.norm = normalisation(task, inputs)
            self.conv = convolution(inputs, outputs, 1)

    def forward(self, x):
        return F.average_pooling_2d(self.conv(F.relu(self.norm(x))), ksize=2, stride=2, pad=0)


class DenseNet121(chainer.Chain):
    def __init__(self, task):
        super().__init__()
        self.blocks = [name for name, *_ in blocks(task)]
        with self.init_scope():
            self.stem = chainer.Chain(
                conv=convolution(3, 2 * task.growth, 7, 2), norm=normalisation(task, 2 * task.growth)
            )
            for name, inputs, channels, count in blocks(task):
                rows = [Layer(task, inputs + number * task.growth) for number in range(count)]
                setattr(self, name, Block(*rows) if count else Transition(task, inputs, channels))
            self.norm = normalisation(task, channels)
            self.classifier = L.Linear(channels, task.labels, nobias=False)

    def forward(self, x):  # (batch, 3, 224, 224)
        x = F.relu(self.stem.norm(self.stem.conv(x)))  # (batch, 64, 112, 112)
        x = F.max_pooling_2d(x, ksize=3, stride=2, pad=1, cover_all=False)  # (batch, 64, 56, 56)
        for name in self.blocks:
            x = getattr(self, name)(x)
        x = F.mean(F.relu(self.norm(x)), axis=(2, 3))  # (batch, 1024), from (batch, 1024, 7, 7)
        return self.classifier(x)  # (batch, 14)


class Recipe(ChainerRecipe):
    LAYOUT = "NCHW"

    def network(self, task):
        return DenseNet121(task)

    def layers(self, task):
        return [name for name, _ in layers(task)]

    def loss(self, task, output, y):
        return F.sigmoid_cross_entropy(output, y.astype("int32"))  # it takes integers only

    def optimiser(self, net, task):
        return adam(net, task)
