"""Transformer in PyTorch: eager, fused attention, fused optimiser."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, dropout, linear, relu

from stele_worker.attention.torch import CrossAttention, PostNormLayer, adam_step
from stele_worker.frameworks.torch import autocast, on_device, outputs
from stele_worker.tasks.transformer import positions

LAYOUT = None


class DecoderLayer(PostNormLayer):
    def __init__(self, task, activation):
        super().__init__(task, activation)
        self.cross = CrossAttention(task)

    def forward(self, x, memory):
        x = self.norm1(x + self.drop(self.attention(x, causal=True)))
        x = self.cross.norm(x + self.drop(self.cross(x, memory)))
        return self.norm2(x + self.drop(self.feed_forward(x)))


class Transformer(nn.Module):
    def __init__(self, task):
        super().__init__()
        self.rate, self.scale = task.dropout[0], task.hidden**0.5
        self.embedding = nn.Embedding(task.vocabulary, task.hidden)
        self.register_buffer("positions", torch.from_numpy(positions(task)), persistent=False)
        self.encoder = nn.ModuleList([PostNormLayer(task, relu) for _ in range(task.layers)])
        self.decoder = nn.ModuleList([DecoderLayer(task, relu) for _ in range(task.layers)])

    def embed(self, tokens):
        x = self.scale * self.embedding(tokens) + self.positions  # (batch, length, hidden)
        return dropout(x, self.rate, self.training)

    def forward(self, source, prefix):
        memory = self.embed(source)
        for layer in self.encoder:
            memory = layer(memory)
        x = self.embed(prefix)
        for layer in self.decoder:
            x = layer(x, memory)
        return x

    def logits(self, x):
        return linear(x, self.embedding.weight).float()  # (..., vocabulary)


def network(task):
    return Transformer(task)


def load(net, weights):
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    return on_device(net)


def predict(net, task, source, prefix):
    with autocast(task):
        return net.logits(net(source, prefix)[:, -1])


def loss(net, task):
    def compute(source, prefix, y):
        with autocast(task):
            logits = net.logits(net(source, prefix))
        return cross_entropy(logits.flatten(0, 1), y.flatten(), label_smoothing=task.smoothing)

    return compute


def training_step(net, task):
    return adam_step(net, task, loss(net, task))


def stored(net):
    return dict(net.named_parameters())


def neutral(name, array):
    return array  # PyTorch has the Task's layouts


def activations(net, task):
    names = ["{}.{}".format(part, number) for part in ("encoder", "decoder") for number in range(task.layers)]
    return outputs(net, names, lambda *inputs: predict(net, task, *inputs))
