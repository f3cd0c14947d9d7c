"""CNN on CIFAR-10 in Flax: a module of nnx, one jitted step, channels last, the optimiser of optax."""

import optax
from flax import nnx

from stele_worker.frameworks.flax.recipe import FlaxRecipe


class CNN(nnx.Module):
    def __init__(self, task, rngs):
        options = {"padding": 1, "dtype": task.dtype, "rngs": rngs}
        self.conv1 = nnx.Conv(3, 50, (3, 3), **options)
        self.conv2 = nnx.Conv(50, 50, (3, 3), **options)
        self.conv3 = nnx.Conv(50, 100, (3, 3), **options)
        self.conv4 = nnx.Conv(100, 100, (3, 3), **options)
        self.dense1 = nnx.Linear(6400, 512, dtype=task.dtype, rngs=rngs)
        self.dense2 = nnx.Linear(512, 10, dtype=task.dtype, rngs=rngs)
        self.dropout1, self.dropout2, self.dropout3 = (nnx.Dropout(rate, rngs=rngs) for rate in task.dropout)

    def __call__(self, x, record):
        x = nnx.relu(record("conv1", self.conv1(x)))  # (batch, 32, 32, 50)
        x = record("conv2", self.conv2(x))
        x = self.dropout1(nnx.relu(nnx.max_pool(x, (2, 2), (2, 2))))  # (batch, 16, 16, 50)
        x = nnx.relu(record("conv3", self.conv3(x)))  # (batch, 16, 16, 100)
        x = record("conv4", self.conv4(x))
        x = self.dropout2(nnx.relu(nnx.max_pool(x, (2, 2), (2, 2))))  # (batch, 8, 8, 100)
        x = x.reshape(-1, 6400)
        x = self.dropout3(nnx.relu(record("dense1", self.dense1(x))))
        return record("dense2", self.dense2(x))  # (batch, 10)


class Recipe(FlaxRecipe):
    LAYOUT = "NHWC"

    def network(self, task):
        return self.build(lambda rngs: CNN(task, rngs), task)

    def loss(self, task, output, y):
        return optax.softmax_cross_entropy_with_integer_labels(output, y).mean()

    def optimiser(self, net, task):
        return optax.sgd(task.learning_rate, task.momentum)

    def layout(self, name, array):
        if array.ndim == 4:
            return array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        if name == "dense1.weight":  # from channel, row, column to the order of flattening here
            array = array.reshape(512, 100, 8, 8).transpose(0, 2, 3, 1).reshape(512, 6400)
        return array.T if array.ndim == 2 else array
