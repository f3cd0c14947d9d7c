"""CNN on CIFAR-10 in Chainer: define-by-run, NCHW."""

import chainer
import chainer.functions as F
import chainer.links as L

from stele_worker.frameworks.chainer.recipe import ChainerRecipe, sgd


class CNN(chainer.Chain):
    def __init__(self, task):
        super().__init__()
        self.rates = task.dropout
        with self.init_scope():
            self.conv1 = L.Convolution2D(3, 50, ksize=3, stride=1, pad=1, nobias=False)
            self.conv2 = L.Convolution2D(50, 50, ksize=3, stride=1, pad=1, nobias=False)
            self.conv3 = L.Convolution2D(50, 100, ksize=3, stride=1, pad=1, nobias=False)
            self.conv4 = L.Convolution2D(100, 100, ksize=3, stride=1, pad=1, nobias=False)
            self.dense1 = L.Linear(6400, 512, nobias=False)
            self.dense2 = L.Linear(512, 10, nobias=False)

    def forward(self, x):  # (batch, 3, 32, 32)
        x = F.relu(self.conv1(x))  # (batch, 50, 32, 32)
        x = F.relu(pool(self.conv2(x)))  # (batch, 50, 16, 16)
        x = F.dropout(x, self.rates[0])
        x = F.relu(self.conv3(x))  # (batch, 100, 16, 16)
        x = F.relu(pool(self.conv4(x)))  # (batch, 100, 8, 8)
        x = F.dropout(x, self.rates[1])
        x = F.reshape(x, (-1, 6400))
        x = F.dropout(F.relu(self.dense1(x)), self.rates[2])
        return self.dense2(x)  # (batch, 10)


def pool(x):
    return F.max_pooling_2d(x, ksize=2, stride=2, pad=0, cover_all=False)


class Recipe(ChainerRecipe):
    LAYOUT = "NCHW"

    def network(self, task):
        return CNN(task)

    def layers(self, task):
        return ("conv1", "conv2", "conv3", "conv4", "dense1", "dense2")

    def loss(self, task, output, y):
        return F.softmax_cross_entropy(output, y)

    def optimiser(self, net, task):
        return sgd(net, task)
