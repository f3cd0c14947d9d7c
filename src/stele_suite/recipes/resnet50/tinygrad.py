"""ResNet-50 v1.5 in tinygrad: layers of nn, one captured step, channels first, nn.optim.SGD."""

from tinygrad import nn
from tinygrad.nn.state import get_parameters

from stele_suite.tasks.resnet50 import blocks
from stele_worker.frameworks.tinygrad.recipe import TinygradRecipe


def convolution(inputs, outputs, size, stride):
    return nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, bias=False)


def normalisation(task, channels):
    return nn.BatchNorm(channels, eps=task.epsilon, momentum=task.statistics)


class Bottleneck:
    def __init__(self, task, inputs, width, stride):
        outputs = 4 * width
        self.conv1 = convolution(inputs, width, 1, 1)
        self.bn1 = normalisation(task, width)
        self.conv2 = convolution(width, width, 3, stride)
        self.bn2 = normalisation(task, width)
        self.conv3 = convolution(width, outputs, 1, 1)
        self.bn3 = normalisation(task, outputs)
        self.downsample = []
        if inputs != outputs:
            self.downsample = [convolution(inputs, outputs, 1, stride), normalisation(task, outputs)]

    def __call__(self, x):
        shortcut = x.sequential(self.downsample)
        x = self.bn1(self.conv1(x)).relu()
        x = self.bn2(self.conv2(x)).relu()
        return (self.bn3(self.conv3(x)) + shortcut).relu()


class ResNet50:
    def __init__(self, task):
        self.conv1 = convolution(3, 64, 7, 2)
        self.bn1 = normalisation(task, 64)
        for stage in range(1, 5):
            rows = [row[1:] for row in blocks() if row[0].startswith("layer{}.".format(stage))]
            setattr(self, "layer{}".format(stage), [Bottleneck(task, *row) for row in rows])
        self.fc = nn.Linear(task.features, task.classes)

    def features(self, x, record):
        x = self.bn1(self.conv1(x)).relu()  # (batch, 64, 112, 112)
        x = record("pool", x.max_pool2d(3, stride=2, padding=1))  # (batch, 64, 56, 56)
        for stage, layer in enumerate((self.layer1, self.layer2, self.layer3, self.layer4), 1):
            for number, block in enumerate(layer):
                x = record("layer{}.{}".format(stage, number), block(x))
        return x.mean((2, 3))  # (batch, 2048), from (batch, 2048, 7, 7)

    def __call__(self, x, record):
        return self.fc(self.features(x, record))  # (batch, 1000)


class Recipe(TinygradRecipe):
    LAYOUT = "NCHW"

    def network(self, task):
        return ResNet50(task)

    def predict(self, net, task, x):
        return net.features(x, self.record)

    def loss(self, task, output, y):
        return output.sparse_categorical_crossentropy(y)

    def optimiser(self, net, task):
        return nn.optim.SGD(get_parameters(net), lr=task.learning_rate, momentum=task.momentum)
