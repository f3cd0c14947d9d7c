"""GPT-2 in PyTorch: eager, fused attention, fused optimiser."""

from functools import partial

import torch
from torch import nn
from torch.nn.functional import cross_entropy, dropout, gelu, linear

from stele_worker.attention.torch import PreNormLayer, adam_step, norm
from stele_worker.frameworks.torch import autocast, on_device, outputs

LAYOUT = None


class Decoder(nn.Module):
    def __init__(self, task):
        super().__init__()
        self.rate = task.dropout[0]
        self.tokens = nn.Embedding(task.vocabulary, task.hidden)
        self.positions = nn.Embedding(task.positions, task.hidden)
        activation = partial(gelu, approximate="tanh")
        self.layer = nn.ModuleList([PreNormLayer(task, activation) for _ in range(task.layers)])
        self.norm = norm(task)

    def forward(self, tokens, caches=None, place=0):
        """Return the last layer. With ``caches``, (layers, 2, ...), of one position that follows those before."""
        length = tokens.shape[1]
        x = self.tokens(tokens) + self.positions.weight[place : place + length]
        x = dropout(x, self.rate, self.training)  # (batch, length, hidden)
        for number, layer in enumerate(self.layer):
            cache = None if caches is None else caches[number]
            x = layer(x, causal=caches is None, cache=cache, place=place)
        return self.norm(x)

    def logits(self, x):
        return linear(x, self.tokens.weight).float()  # (..., vocabulary)


def network(task):
    return Decoder(task)


def load(net, weights):
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    return on_device(net)


def predict(net, task, tokens):
    with autocast(task):
        return net.logits(net(tokens)[:, -1])


def loss(net, task):
    def compute(tokens, y):
        with autocast(task):
            logits = net.logits(net(tokens))
        return cross_entropy(logits.flatten(0, 1), y.flatten())

    return compute


def training_step(net, task):
    return adam_step(net, task, loss(net, task))


def stored(net):
    return dict(net.named_parameters())


def neutral(name, array):
    return array  # PyTorch has the Task's layouts


def activations(net, task):
    names = ["layer.{}".format(number) for number in range(task.layers)]
    return outputs(net, names, lambda *inputs: predict(net, task, *inputs))
