"""torchvision's models and its reference script for classification: channels first, SGD as it is made."""

from public.torch import training_step
from torch import nn, optim


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


def resnet50(task):
    """models.resnet50."""
    net = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, padding=1),
        stage(64, 64, 3, 1), stage(256, 128, 4, 2), stage(512, 256, 6, 2), stage(1024, 512, 3, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, task.classes),
    )  # fmt: skip
    return training_step(net, optim.SGD(net.parameters(), lr=task.learning_rate, momentum=task.momentum))
