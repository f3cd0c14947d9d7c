"""CNN on CIFAR-10 in Paddle 3: eager training, Paddle Inference with oneDNN, channels first."""

import paddle
from paddle import nn
from paddle.nn.functional import cross_entropy, dropout, max_pool2d, relu

from stele_worker.frameworks.paddle import make_training_step, outputs

LAYOUT = "NCHW"


class CNN(nn.Layer):
    def __init__(self, task):
        super().__init__()
        self.rates = task.dropout
        self.conv1 = nn.Conv2D(3, 50, 3, stride=1, padding=1)
        self.conv2 = nn.Conv2D(50, 50, 3, stride=1, padding=1)
        self.conv3 = nn.Conv2D(50, 100, 3, stride=1, padding=1)
        self.conv4 = nn.Conv2D(100, 100, 3, stride=1, padding=1)
        self.dense1 = nn.Linear(6400, 512)
        self.dense2 = nn.Linear(512, 10)

    def forward(self, x):
        x = relu(self.conv1(x))  # (batch, 50, 32, 32), from (batch, 3, 32, 32)
        x = relu(max_pool2d(self.conv2(x), 2, stride=2))  # (batch, 50, 16, 16)
        x = dropout(x, self.rates[0], training=self.training)
        x = relu(self.conv3(x))  # (batch, 100, 16, 16)
        x = relu(max_pool2d(self.conv4(x), 2, stride=2))  # (batch, 100, 8, 8)
        x = dropout(x, self.rates[1], training=self.training)
        x = x.flatten(1)  # (batch, 6400)
        x = dropout(relu(self.dense1(x)), self.rates[2], training=self.training)
        return self.dense2(x)  # (batch, 10)


def network(task):
    return CNN(task)


def load(net, weights):
    for name, parameter in net.named_parameters():
        parameter.set_value(weights[name].T if weights[name].ndim == 2 else weights[name])  # dense: (in, out)
    return net


def loss(net, task):
    def compute(x, y):
        return cross_entropy(net(x), y)

    return compute


def training_step(net, task):
    optimiser = paddle.optimizer.Momentum(
        task.learning_rate, task.momentum, net.parameters(), use_nesterov=False, weight_decay=None
    )
    return make_training_step(net, optimiser, loss(net, task))


def stored(net):
    return dict(net.named_parameters())


def neutral(name, array):
    return array.T if array.ndim == 2 else array


def activations(net, task):
    return outputs(net, ("conv1", "conv2", "conv3", "conv4", "dense1", "dense2"))
