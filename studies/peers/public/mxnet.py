"""Gluon's tutorials: HybridSequential, hybridized with static memory as in GluonCV, and a Trainer; channels first."""

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn


def cnn(task):
    """The tutorial on CIFAR-10, with the layers of this task."""
    net = nn.HybridSequential()
    for channels, rate in ((50, task.dropout[0]), (100, task.dropout[1])):
        net.add(nn.Conv2D(channels, 3, padding=1, activation="relu"), nn.Conv2D(channels, 3, padding=1))
        net.add(nn.MaxPool2D(), nn.Activation("relu"), nn.Dropout(rate))
    net.add(nn.Flatten(), nn.Dense(512, activation="relu"), nn.Dropout(task.dropout[2]), nn.Dense(10))
    net.hybridize(static_alloc=True, static_shape=True)
    return net, ("sgd", {"learning_rate": task.learning_rate, "momentum": task.momentum})


class Classifier(gluon.Block):
    def __init__(self, task):
        super().__init__()
        self.embedding = nn.Embedding(task.vocabulary, task.embedding)
        self.gru = gluon.rnn.GRU(task.hidden, layout="NTC")
        self.dense = nn.Dense(2)

    def forward(self, x):
        return self.dense(self.gru(self.embedding(x))[:, -1])


def gru(task):
    """The tutorial on text, with gluon.rnn.GRU."""
    return Classifier(task), ("adam", {"learning_rate": task.learning_rate})


def training_step(net, optimizer):
    net.initialize(mx.init.Xavier())
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), *optimizer, kvstore=None)

    def step(x, y):
        with autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(len(x))
        return loss.mean()

    return step


def inference_step(net):
    net.initialize(mx.init.Xavier())
    return net
