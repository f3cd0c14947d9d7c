"""torchvision's models and its reference script for classification: channels first, SGD as it is made."""

from public.torch import inference_step, training_step
from torch import nn, optim

from stele_suite.tasks.mobilenetv2 import HEAD, STAGES, STEM

__all__ = ["inference_step", "training_step"]


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride, downsample):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.relu, self.downsample = nn.ReLU(inplace=True), downsample

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


def stage(inputs, width, count, stride):
    shortcut = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))
    rest = [Bottleneck(4 * width, width, 1, None) for _ in range(count - 1)]
    return nn.Sequential(Bottleneck(inputs, width, stride, shortcut), *rest)


class ResNet(nn.Module):
    def __init__(self, task):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, padding=1),
            stage(64, 64, 3, 1), stage(256, 128, 4, 2), stage(512, 256, 6, 2), stage(1024, 512, 3, 2),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )  # fmt: skip
        self.fc = nn.Linear(2048, task.classes)

    def forward(self, x):
        x = self.features(x)
        return self.fc(x) if self.training else x  # the task's inference gives the features


def resnet50(task):
    """models.resnet50."""
    return with_sgd(ResNet(task), task)


def normalised(inputs, outputs, size=1, stride=1, groups=1):
    return [
        nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]


class InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, stride, expansion):
        super().__init__()
        width = inputs * expansion
        expand = [] if expansion == 1 else [*normalised(inputs, width), nn.ReLU6(inplace=True)]
        depthwise = [*normalised(width, width, 3, stride, groups=width), nn.ReLU6(inplace=True)]
        self.conv = nn.Sequential(*expand, *depthwise, *normalised(width, outputs))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.conv(x) if self.adds else self.conv(x)


def mobilenetv2(task):
    """models.mobilenet_v2."""
    layers, inputs = [*normalised(3, STEM, 3, 2), nn.ReLU6(inplace=True)], STEM
    for expansion, outputs, count, first in STAGES:
        for stride in [first] + [1] * (count - 1):
            layers.append(InvertedResidual(inputs, outputs, stride, expansion))
            inputs = outputs
    layers += [*normalised(inputs, HEAD), nn.ReLU6(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return with_sgd(nn.Sequential(*layers, nn.Dropout(task.dropout[0]), nn.Linear(HEAD, task.classes)), task)


def with_sgd(net, task):
    return net, optim.SGD(net.parameters(), lr=task.learning_rate, momentum=task.momentum)
