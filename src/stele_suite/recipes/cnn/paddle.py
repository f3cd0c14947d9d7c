"""CNN on CIFAR-10 in Paddle 3: eager training, Paddle Inference with oneDNN, channels first."""

from paddle import nn
from paddle.nn.functional import cross_entropy, dropout, max_pool2d, relu

from stele_worker.frameworks.paddle.recipe import PaddleRecipe, momentum


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


class Recipe(PaddleRecipe):
    LAYOUT = "NCHW"

    def network(self, task):
        return CNN(task)

    def layers(self, task):
        return ("conv1", "conv2", "conv3", "conv4", "dense1", "dense2")

    def loss(self, task, output, y):
        return cross_entropy(output, y)

    def optimiser(self, net, task):
        return momentum(net, task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 else array  # dense: (in, out)
