"""PyTorch's tutorials: nn modules and optimizers as they are made, channels first."""

import torch
from torch import nn, optim
from torch.nn.functional import cross_entropy


def cnn(task):
    """The tutorial on CIFAR-10, with the layers of this task."""
    net = nn.Sequential(
        nn.Conv2d(3, 50, 3, padding=1), nn.ReLU(), nn.Conv2d(50, 50, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(),
        nn.Dropout(task.dropout[0]),
        nn.Conv2d(50, 100, 3, padding=1), nn.ReLU(), nn.Conv2d(100, 100, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(),
        nn.Dropout(task.dropout[1]), nn.Flatten(),
        nn.Linear(6400, 512), nn.ReLU(), nn.Dropout(task.dropout[2]), nn.Linear(512, 10),
    )  # fmt: skip
    return net, optim.SGD(net.parameters(), lr=task.learning_rate, momentum=task.momentum)


class Classifier(nn.Module):
    def __init__(self, task):
        super().__init__()
        self.embedding = nn.Embedding(task.vocabulary, task.embedding)
        self.gru = nn.GRU(task.embedding, task.hidden, batch_first=True)
        self.dense = nn.Linear(task.hidden, 2)

    def forward(self, x):
        return self.dense(self.gru(self.embedding(x))[0][:, -1])


def gru(task):
    """The tutorial on text."""
    net = Classifier(task)
    return net, optim.Adam(net.parameters(), lr=task.learning_rate)


def training_step(net, optimizer):
    net.train()

    def step(*batch):
        *inputs, y = batch
        optimizer.zero_grad()
        loss = cross_entropy(net(*inputs).flatten(0, -2), y.flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def inference_step(net):
    net.eval()

    @torch.no_grad()
    def step(*inputs):
        return net(*inputs)

    return step
