"""BERT-shaped encoder in PyTorch: eager, fused attention, fused optimiser."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, dropout, gelu

from stele_worker.attention.torch import PostNormLayer, adam_step, norm
from stele_worker.frameworks.torch import autocast, on_device, outputs

LAYOUT = None


class Encoder(nn.Module):
    def __init__(self, task):
        super().__init__()
        self.rate = task.dropout[0]
        self.tokens = nn.Embedding(task.vocabulary, task.hidden)
        self.positions = nn.Embedding(task.positions, task.hidden)
        self.segments = nn.Embedding(task.segments, task.hidden)
        self.norm = norm(task)
        self.layer = nn.ModuleList([PostNormLayer(task, gelu) for _ in range(task.layers)])
        self.pooler = nn.Linear(task.hidden, task.hidden)
        self.classifier = nn.Linear(task.hidden, task.classes)

    def forward(self, tokens, segments):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]] + self.segments(segments)
        x = dropout(self.norm(x), self.rate, self.training)  # (batch, length, hidden)
        mask = (tokens != 0)[:, None, None]  # (batch, heads, queries, keys)
        for layer in self.layer:
            x = layer(x, mask=mask)
        x = torch.tanh(self.pooler(x[:, 0]))  # (batch, hidden)
        return self.classifier(dropout(x, self.rate, self.training))  # (batch, classes)


def network(task):
    return Encoder(task)


def load(net, weights):
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    return on_device(net)


def predict(net, task, tokens, segments):
    with autocast(task):
        return net(tokens, segments).float()


def loss(net, task):
    return lambda tokens, segments, y: cross_entropy(predict(net, task, tokens, segments), y)


def training_step(net, task):
    return adam_step(net, task, loss(net, task))


def stored(net):
    return dict(net.named_parameters())


def neutral(name, array):
    return array  # PyTorch has the Task's layouts


def activations(net, task):
    names = ["layer.{}".format(number) for number in range(task.layers)]
    return outputs(net, names, lambda *inputs: predict(net, task, *inputs))
