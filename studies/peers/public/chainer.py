"""Chainer's examples: a Chain in L.Classifier, and an optimizer that updates by the loss function."""

import chainer
import chainer.functions as F
import chainer.links as L


class CNN(chainer.Chain):
    def __init__(self, task):
        super().__init__()
        self.rates = task.dropout
        with self.init_scope():
            self.conv1, self.conv2 = L.Convolution2D(3, 50, 3, pad=1), L.Convolution2D(50, 50, 3, pad=1)
            self.conv3, self.conv4 = L.Convolution2D(50, 100, 3, pad=1), L.Convolution2D(100, 100, 3, pad=1)
            self.dense1, self.dense2 = L.Linear(None, 512), L.Linear(512, 10)

    def forward(self, x):
        x = F.relu(F.max_pooling_2d(self.conv2(F.relu(self.conv1(x))), 2, 2))
        x = F.dropout(x, self.rates[0])
        x = F.relu(F.max_pooling_2d(self.conv4(F.relu(self.conv3(x))), 2, 2))
        x = F.dropout(x, self.rates[1])
        return self.dense2(F.dropout(F.relu(self.dense1(x)), self.rates[2]))


class Classifier(chainer.Chain):
    def __init__(self, task):
        super().__init__()
        with self.init_scope():
            self.embedding = L.EmbedID(task.vocabulary, task.embedding)
            self.gru = L.NStepGRU(1, task.embedding, task.hidden, 0.0)
            self.dense = L.Linear(task.hidden, 2)

    def forward(self, x):
        hidden, _ = self.gru(None, F.separate(self.embedding(x), axis=0))
        return self.dense(hidden[0])


def cnn(task):
    """The example on CIFAR-10, with the layers of this task."""
    return CNN(task), chainer.optimizers.MomentumSGD(task.learning_rate, task.momentum)


def gru(task):
    """The example on text classification, with L.NStepGRU."""
    return Classifier(task), chainer.optimizers.Adam(task.learning_rate)


def training_step(net, optimizer):
    model = L.Classifier(net)
    model.compute_accuracy = False  # the recipes do not compute it in a step
    optimizer.setup(model)

    def step(x, y):
        optimizer.update(model, x, y)
        return model.loss

    return step


def inference_step(net):
    def step(x):
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return net(x).array

    return step
