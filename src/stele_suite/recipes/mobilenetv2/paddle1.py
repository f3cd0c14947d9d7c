"""MobileNetV2 in Paddle 1: imperative training, Paddle Inference with MKL-DNN, channels first."""

import paddle.fluid as fluid
from paddle.fluid.dygraph import BatchNorm, Conv2D, Linear
from paddle.fluid.layers import mean, reduce_mean, relu6, softmax_with_cross_entropy

from stele_suite.tasks.mobilenetv2 import HEAD, STEM, blocks
from stele_worker.frameworks.paddle1.recipe import Paddle1Recipe, drop, momentum


class Unit(fluid.dygraph.Layer):
    """A convolution and its batch normalisation."""

    def __init__(self, task, inputs, outputs, size=1, stride=1, groups=1):
        super().__init__()
        # the kernels of MKL-DNN and of a product are for dense convolutions: Paddle has its own for one channel each
        self.conv = Conv2D(inputs, outputs, size, stride, size // 2, groups=groups, bias_attr=False)
        # Paddle always updates the running variance by the biased variance, (n - 1) / n of the Task's. Training does
        # not use the running variance, so it computes the same
        self.norm = BatchNorm(outputs, momentum=1 - task.statistics, epsilon=task.epsilon)

    def forward(self, x):
        return self.norm(self.conv(x))


class Block(fluid.dygraph.Layer):
    def __init__(self, task, inputs, width, outputs, stride):
        super().__init__()
        self.adds = stride == 1 and inputs == outputs
        self.expand = Unit(task, inputs, width) if width != inputs else None
        self.depthwise = Unit(task, width, width, 3, stride, groups=width)
        self.project = Unit(task, width, outputs)

    def forward(self, x):
        y = x if self.expand is None else relu6(self.expand(x))
        y = self.project(relu6(self.depthwise(y)))
        return x + y if self.adds else y


class MobileNetV2(fluid.dygraph.Layer):
    def __init__(self, task):
        super().__init__()
        self.rate = task.dropout[0]
        self.stem = Unit(task, 3, STEM, 3, 2)
        for name, *sizes in blocks():
            self.add_sublayer(name, Block(task, *sizes))
            channels = sizes[2]
        self.head = Unit(task, channels, HEAD)
        self.classifier = Linear(HEAD, task.classes)

    def forward(self, x):
        x = relu6(self.stem(x))  # (batch, 32, 112, 112), from (batch, 3, 224, 224)
        for name, *_ in blocks():
            x = getattr(self, name)(x)
        x = reduce_mean(relu6(self.head(x)), dim=[2, 3])  # (batch, 1280), from (batch, 1280, 7, 7)
        return self.classifier(drop(x, self.rate, self.training))  # (batch, 1000)


class Recipe(Paddle1Recipe):
    LAYOUT = "NCHW"

    def network(self, task):
        return MobileNetV2(task)

    def layers(self, task):
        return [name for name, *_ in blocks()]

    def loss(self, task, output, y):
        return mean(softmax_with_cross_entropy(output, y))

    def optimiser(self, net, task):
        return momentum(net, task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 else array  # dense: (in, out)
