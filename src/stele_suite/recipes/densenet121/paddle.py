"""DenseNet-121 in Paddle 3: eager training, Paddle Inference with oneDNN, channels first."""

import paddle
from paddle import nn
from paddle.nn.functional import avg_pool2d, binary_cross_entropy_with_logits, relu

from stele_suite.tasks.densenet121 import blocks, layers
from stele_worker.frameworks.paddle.recipe import PaddleRecipe, adam


def convolution(inputs, outputs, size, stride=1):
    return nn.Conv2D(inputs, outputs, size, stride=stride, padding=size // 2, bias_attr=False)


def normalisation(task, channels):
    # Paddle always updates the running variance by the biased variance, (n - 1) / n of the Task's. Training does not
    # use the running variance, so it computes the same
    return nn.BatchNorm2D(channels, momentum=1 - task.statistics, epsilon=task.norm_epsilon)


class Layer(nn.Layer):
    """Return the channels that a dense layer appends to its input."""

    def __init__(self, task, inputs):
        super().__init__()
        self.norm1 = normalisation(task, inputs)
        self.conv1 = convolution(inputs, 4 * task.growth, 1)
        self.norm2 = normalisation(task, 4 * task.growth)
        self.conv2 = convolution(4 * task.growth, task.growth, 3)

    def forward(self, x):
        return self.conv2(relu(self.norm2(self.conv1(relu(self.norm1(x))))))


class Block(nn.LayerList):
    def forward(self, x):
        for layer in self:
            x = paddle.concat((x, layer(x)), 1)
        return x


class Transition(nn.Layer):
    def __init__(self, task, inputs, outputs):
        super().__init__()
        self.norm = normalisation(task, inputs)
        self.conv = convolution(inputs, outputs, 1)

    def forward(self, x):
        return avg_pool2d(self.conv(relu(self.norm(x))), 2)


class DenseNet121(nn.Layer):
    def __init__(self, task):
        super().__init__()
        self.blocks = [name for name, *_ in blocks(task)]
        self.stem = nn.LayerDict(
            {"conv": convolution(3, 2 * task.growth, 7, 2), "norm": normalisation(task, 2 * task.growth)}
        )
        self.pool = nn.MaxPool2D(3, stride=2, padding=1)
        for name, inputs, channels, count in blocks(task):
            rows = [Layer(task, inputs + number * task.growth) for number in range(count)]
            self.add_sublayer(name, Block(rows) if count else Transition(task, inputs, channels))
        self.norm = normalisation(task, channels)
        self.classifier = nn.Linear(channels, task.labels)

    def forward(self, x):
        x = self.pool(relu(self.stem["norm"](self.stem["conv"](x))))  # (batch, 64, 56, 56)
        for name in self.blocks:
            x = getattr(self, name)(x)
        x = relu(self.norm(x)).mean((2, 3))  # (batch, 1024), from (batch, 1024, 7, 7)
        return self.classifier(x)  # (batch, 14)


class Recipe(PaddleRecipe):
    LAYOUT = "NCHW"

    def network(self, task):
        return DenseNet121(task)

    def layers(self, task):
        return [name for name, _ in layers(task)]

    def loss(self, task, output, y):
        return binary_cross_entropy_with_logits(output, y)

    def optimiser(self, net, task):
        return adam(net, task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 else array  # dense: (in, out)
