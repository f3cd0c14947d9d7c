"""GPT-2 in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

import numpy

from stele_suite.oracle import adam, gelu_tanh, softmax_cross_entropy
from stele_worker.frameworks.numpy.attention import (
    causal,
    dropped,
    embed,
    layer,
    norm,
    pre_norm,
    project,
)
from stele_worker.frameworks.numpy.recipe import NumpyRecipe


class Recipe(NumpyRecipe):
    def hidden(self, net, task, tokens, random=None):
        """Return (the normalised last layer, backward)."""
        places = numpy.broadcast_to(numpy.arange(tokens.shape[1]), tokens.shape)
        x, embed_tokens = embed(net, "tokens.weight", tokens)  # (batch, length, hidden)
        offset, embed_places = embed(net, "positions.weight", places)
        x, drop = dropped(x + offset, task, random)
        tape, mask = [], causal(tokens.shape[1])
        for name in ["layer.{}".format(number) for number in range(task.layers)]:
            x, backward = layer(net, name, x, task, random, residual=pre_norm, activation=gelu_tanh, mask=mask)
            tape.append(backward)
            self.record(name, x)
        x, normalise = norm(net, "norm", x, task)

        def backward(g, d):
            g = normalise(g, d)
            for layer_backward in reversed(tape):
                g = layer_backward(g, d)
            g = drop(g, d)
            embed_tokens(g, d)
            embed_places(g, d)

        return x, backward

    def forward(self, net, task, tokens, random=None):
        x, hidden_backward = self.hidden(net, task, tokens, random)
        logits, project_backward = project(net, "tokens.weight", x)  # (batch, length, vocabulary)
        return logits, lambda g, d: hidden_backward(project_backward(g, d), d)

    def predict(self, net, task, tokens):
        x, _ = self.hidden(net, task, tokens)
        return project(net, "tokens.weight", x[:, -1:])[0][:, 0]  # (batch, vocabulary)

    def loss(self, task, output, y):
        return softmax_cross_entropy(output, y)

    def optimiser(self, net, task):
        return adam(net, learning_rate=task.learning_rate, beta1=task.beta1, beta2=task.beta2, epsilon=task.epsilon)
