"""A chain of operations in Paddle 3: eager training, Paddle Inference with oneDNN."""

from paddle import nn
from paddle.nn.functional import mse_loss

from stele_worker.frameworks.paddle.recipe import PaddleRecipe, momentum


class Chain(nn.Layer):
    def __init__(self, task):
        super().__init__()
        self.links = task.links
        self.factor = self.create_parameter([task.width])
        self.summand = self.create_parameter([task.width])

    def forward(self, x):
        for _ in range(self.links):
            x = x * self.factor + self.summand  # (batch, width)
        return x


class Recipe(PaddleRecipe):
    def network(self, task):
        return Chain(task)

    def loss(self, task, output, y):
        return mse_loss(output, y)

    def optimiser(self, net, task):
        return momentum(net, task)
