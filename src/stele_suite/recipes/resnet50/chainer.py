"""ResNet-50 v1.5 in Chainer: define-by-run, NCHW."""

import chainer
import chainer.functions as F
import chainer.links as L

from stele_suite.tasks.resnet50 import blocks
from stele_worker.frameworks.chainer.recipe import ChainerRecipe, sgd


def convolution(inputs, outputs, size, stride):
    return L.Convolution2D(inputs, outputs, ksize=size, stride=stride, pad=size // 2, nobias=True)


def normalisation(task, channels):
    return L.BatchNormalization(channels, decay=1 - task.statistics, eps=task.epsilon)


class Bottleneck(chainer.Chain):
    def __init__(self, task, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.projects = inputs != outputs
        with self.init_scope():
            self.conv1 = convolution(inputs, width, 1, 1)
            self.bn1 = normalisation(task, width)
            self.conv2 = convolution(width, width, 3, stride)
            self.bn2 = normalisation(task, width)
            self.conv3 = convolution(width, outputs, 1, 1)
            self.bn3 = normalisation(task, outputs)
            if self.projects:
                self.downsample = chainer.Sequential(
                    convolution(inputs, outputs, 1, stride), normalisation(task, outputs)
                )

    def forward(self, x):
        shortcut = self.downsample(x) if self.projects else x
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return F.relu(self.bn3(self.conv3(x)) + shortcut)


class ResNet50(chainer.Chain):
    def __init__(self, task):
        super().__init__()
        with self.init_scope():
            self.conv1 = convolution(3, 64, 7, 2)
            self.bn1 = normalisation(task, 64)
            for stage in range(1, 5):
                rows = [row[1:] for row in blocks() if row[0].startswith("layer{}.".format(stage))]
                # a Sequential of more than two links names them in a different order than it computes them
                links = chainer.ChainList(*[Bottleneck(task, *row) for row in rows])
                setattr(self, "layer{}".format(stage), links)
            self.fc = L.Linear(task.features, task.classes, nobias=False)

    def features(self, x):  # (batch, 3, 224, 224)
        x = F.relu(self.bn1(self.conv1(x)))  # (batch, 64, 112, 112)
        x = F.max_pooling_2d(x, ksize=3, stride=2, pad=1, cover_all=False)  # (batch, 64, 56, 56)
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            for block in stage:
                x = block(x)  # finally (batch, 2048, 7, 7)
        return F.mean(x, axis=(2, 3))  # (batch, 2048)

    def forward(self, x):
        return self.fc(self.features(x))  # (batch, 1000)


class Recipe(ChainerRecipe):
    LAYOUT = "NCHW"

    def network(self, task):
        return ResNet50(task)

    def predict(self, net, task, x):
        return net.features(x)

    def layers(self, task):
        return [name for name, *_ in blocks()]

    def loss(self, task, output, y):
        return F.softmax_cross_entropy(output, y)

    def optimiser(self, net, task):
        return sgd(net, task)
