"""Paddle's own models, and the loop of its documentation: channels first, Momentum."""

from paddle.nn.functional import cross_entropy
from paddle.optimizer import Momentum
from paddle.vision import models


def resnet50(task):
    """paddle.vision.models.resnet50."""
    return training_step(models.resnet50(num_classes=task.classes), task)


def mobilenetv2(task):
    """paddle.vision.models.mobilenet_v2."""
    return training_step(models.mobilenet_v2(num_classes=task.classes), task)


def training_step(net, task):
    net.train()
    optimizer = Momentum(task.learning_rate, task.momentum, parameters=net.parameters())

    def step(x, y):
        loss = cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss.detach()

    return step
