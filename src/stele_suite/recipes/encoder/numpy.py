"""BERT-shaped encoder in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

import numpy

from stele_suite.oracle import adam, gelu, softmax_cross_entropy, tanh
from stele_worker.frameworks.numpy.attention import (
    dropped,
    embed,
    layer,
    linear,
    norm,
    post_norm,
)
from stele_worker.frameworks.numpy.recipe import NumpyRecipe


def embed_all(net, task, tokens, segments, random):
    places = numpy.broadcast_to(numpy.arange(tokens.shape[1]), tokens.shape)
    parts = [("tokens.weight", tokens), ("positions.weight", places), ("segments.weight", segments)]
    values, backwards = zip(*[embed(net, name, numbers) for name, numbers in parts])
    x, normalise = norm(net, "norm", sum(values), task)
    x, drop = dropped(x, task, random)

    def backward(g, d):
        g = normalise(drop(g, d), d)
        for embed_backward in backwards:
            embed_backward(g, d)

    return x, backward


class Recipe(NumpyRecipe):
    def forward(self, net, task, tokens, segments, random=None):
        """Return (logits, backward)."""
        mask = (tokens != 0)[:, None, None]  # (batch, heads, queries, keys)
        x, embed_backward = embed_all(net, task, tokens, segments, random)  # (batch, length, hidden)
        tape = []
        for name in ["layer.{}".format(number) for number in range(task.layers)]:
            x, backward = layer(net, name, x, task, random, residual=post_norm, activation=gelu, mask=mask)
            tape.append(backward)
            self.record(name, x)
        shape = x.shape
        x, pool = linear(net, "pooler", x[:, 0])  # (batch, hidden)
        x, activate = tanh(x)
        x, drop = dropped(x, task, random)
        x, classify = linear(net, "classifier", x)  # (batch, classes)

        def backward(g, d):
            first = pool(activate(drop(classify(g, d), d)), d)
            g = numpy.zeros(shape)
            g[:, 0] = first
            for layer_backward in reversed(tape):
                g = layer_backward(g, d)
            embed_backward(g, d)

        return x, backward

    def loss(self, task, output, y):
        return softmax_cross_entropy(output, y)

    def optimiser(self, net, task):
        return adam(net, learning_rate=task.learning_rate, beta1=task.beta1, beta2=task.beta2, epsilon=task.epsilon)
