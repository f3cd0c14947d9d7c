"""CNN on CIFAR-10 in PyTorch: eager, channels last, fused optimiser."""

from collections import OrderedDict

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from stele_worker.frameworks.torch import on_device

LAYOUT = "NHWC"


def network(task):
    return nn.Sequential(
        OrderedDict(
            [
                ("conv1", nn.Conv2d(3, 50, 3, padding=1)),  # (batch, 50, 32, 32)
                ("relu1", nn.ReLU()),
                ("conv2", nn.Conv2d(50, 50, 3, padding=1)),
                ("pool2", nn.MaxPool2d(2)),  # (batch, 50, 16, 16)
                ("relu2", nn.ReLU()),
                ("drop2", nn.Dropout(task.dropout[0])),
                ("conv3", nn.Conv2d(50, 100, 3, padding=1)),  # (batch, 100, 16, 16)
                ("relu3", nn.ReLU()),
                ("conv4", nn.Conv2d(100, 100, 3, padding=1)),
                ("pool4", nn.MaxPool2d(2)),  # (batch, 100, 8, 8)
                ("relu4", nn.ReLU()),
                ("drop4", nn.Dropout(task.dropout[1])),
                ("flatten", nn.Flatten()),  # (batch, 6400)
                ("dense1", nn.Linear(6400, 512)),
                ("relu5", nn.ReLU()),
                ("drop5", nn.Dropout(task.dropout[2])),
                ("dense2", nn.Linear(512, 10)),  # (batch, 10)
            ]
        )
    )


def load(net, weights):
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    return on_device(net)


def forward(net, task, x):
    x = x.permute(0, 3, 1, 2)  # (batch, 3, 32, 32): a view, channels last in memory
    with torch.autocast(x.device.type, getattr(torch, task.dtype), enabled=task.dtype != "float32"):
        return net(x).float()


def gradients(net, task):
    def run(x, y):
        net.train()
        net.zero_grad()
        loss = cross_entropy(forward(net, task, x), y)
        loss.backward()
        return loss.detach(), {name: weight.grad for name, weight in net.named_parameters()}

    return run


def training_step(net, task):
    optimiser = torch.optim.SGD(net.parameters(), lr=task.learning_rate, momentum=task.momentum, fused=True)
    net.train()

    def step(x, y):
        optimiser.zero_grad()
        loss = cross_entropy(forward(net, task, x), y)
        loss.backward()
        optimiser.step()
        return loss.detach()

    return step


def inference_step(net, task):
    net.eval()

    @torch.inference_mode()
    def step(x):
        return forward(net, task, x)

    return step
