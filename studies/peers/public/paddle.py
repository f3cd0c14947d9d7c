"""Paddle's own models, and the loop of its documentation: channels first, Momentum."""

import paddle
from paddle.nn.functional import cross_entropy
from paddle.optimizer import Momentum
from paddle.vision import models


def resnet50(task):
    """paddle.vision.models.resnet50."""
    return with_momentum(models.resnet50(num_classes=task.classes), task)


def mobilenetv2(task):
    """paddle.vision.models.mobilenet_v2."""
    return with_momentum(models.mobilenet_v2(num_classes=task.classes), task)


def with_momentum(net, task):
    return net, Momentum(task.learning_rate, task.momentum, parameters=net.parameters())


def training_step(net, optimizer):
    net.train()

    def step(x, y):
        loss = cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss.detach()

    return step


def inference_step(net):
    net.eval()
    if isinstance(net, models.ResNet):
        net.num_classes = 0  # the task's inference gives the features
    return paddle.no_grad()(net)
