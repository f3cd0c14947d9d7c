"""MobileNetV2 in Paddle 3: eager training, Paddle Inference with oneDNN, channels first."""

from paddle import nn
from paddle.nn.functional import cross_entropy, dropout, relu6

from stele_suite.tasks.mobilenetv2 import HEAD, STEM, blocks
from stele_worker.frameworks.paddle.recipe import PaddleRecipe, momentum


class Unit(nn.Layer):
    """A convolution and its batch normalisation."""

    def __init__(self, task, inputs, outputs, size=1, stride=1, groups=1):
        super().__init__()
        self.conv = nn.Conv2D(inputs, outputs, size, stride, size // 2, groups=groups, bias_attr=False)
        # Paddle always updates the running variance by the biased variance, (n - 1) / n of the Task's. Training does
        # not use the running variance, so it computes the same
        self.norm = nn.BatchNorm2D(outputs, momentum=1 - task.statistics, epsilon=task.epsilon)

    def forward(self, x):
        return self.norm(self.conv(x))


class Block(nn.Layer):
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


class MobileNetV2(nn.Layer):
    def __init__(self, task):
        super().__init__()
        self.rate = task.dropout[0]
        self.stem = Unit(task, 3, STEM, 3, 2)
        for name, *sizes in blocks():
            self.add_sublayer(name, Block(task, *sizes))
            channels = sizes[2]
        self.head = Unit(task, channels, HEAD)
        self.classifier = nn.Linear(HEAD, task.classes)

    def forward(self, x):
        x = relu6(self.stem(x))  # (batch, 32, 112, 112), from (batch, 3, 224, 224)
        for name, *_ in blocks():
            x = getattr(self, name)(x)
        x = relu6(self.head(x)).mean((2, 3))  # (batch, 1280), from (batch, 1280, 7, 7)
        return self.classifier(dropout(x, self.rate, training=self.training))  # (batch, 1000)


class Recipe(PaddleRecipe):
    LAYOUT = "NCHW"

    def network(self, task):
        return MobileNetV2(task)

    def layers(self, task):
        return [name for name, *_ in blocks()]

    def loss(self, task, output, y):
        return cross_entropy(output, y)

    def optimiser(self, net, task):
        return momentum(net, task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 else array  # dense: (in, out)
