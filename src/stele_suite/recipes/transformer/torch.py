"""Transformer in PyTorch: eager, fused attention, fused optimiser."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, dropout, linear, relu

from stele_suite.tasks.transformer import positions
from stele_worker.frameworks.torch.attention import CrossAttention, PostNormLayer
from stele_worker.frameworks.torch.recipe import TorchRecipe, autocast


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


class Recipe(TorchRecipe):
    def network(self, task):
        return Transformer(task)

    def forward(self, net, task, source, prefix):
        with autocast(task):
            return net.logits(net(source, prefix))

    def predict(self, net, task, source, prefix):
        with autocast(task):
            return net.logits(net(source, prefix)[:, -1])

    def layers(self, task):
        return ["{}.{}".format(part, number) for part in ("encoder", "decoder") for number in range(task.layers)]

    def loss(self, task, output, y):
        return cross_entropy(output.flatten(0, 1), y.flatten(), label_smoothing=task.smoothing)

    def optimiser(self, net, task):
        betas = task.beta1, task.beta2
        return torch.optim.Adam(net.parameters(), lr=task.learning_rate, betas=betas, eps=task.epsilon, fused=True)
