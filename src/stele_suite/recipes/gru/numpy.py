"""GRU on IMDB in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

import numpy

from stele_suite.oracle import adam, dense, embedding, softmax_cross_entropy
from stele_worker.frameworks.numpy.recipe import NumpyRecipe


def sigmoid(x):
    return (1 + numpy.tanh(x / 2)) / 2


def cell(a, h, weight, bias):
    """Compute one step of the GRU from a = W x + b, with gates r, z, n: (batch, 3 * hidden)."""
    c, dense_hidden = dense(h, weight, bias)  # (batch, 3 * hidden)
    (a_r, a_z, a_n), (c_r, c_z, c_n) = numpy.split(a, 3, axis=1), numpy.split(c, 3, axis=1)
    r, z = sigmoid(a_r + c_r), sigmoid(a_z + c_z)
    n = numpy.tanh(a_n + r * c_n)

    def backward(g):
        d_n = g * (1 - z) * (1 - n * n)
        d_z = g * (h - n) * z * (1 - z)
        d_r = d_n * c_n * r * (1 - r)
        d_h, d_weight, d_bias = dense_hidden(numpy.concatenate([d_r, d_z, d_n * r], axis=1))
        return numpy.concatenate([d_r, d_z, d_n], axis=1), g * z + d_h, d_weight, d_bias

    return (1 - z) * n + z * h, backward


def gru(x, input_weight, hidden_weight, input_bias, hidden_bias):
    """Return (last hidden state, backward)."""
    a, dense_input = dense(x, input_weight, input_bias)  # (batch, 150, 300)
    h = numpy.zeros((len(x), hidden_weight.shape[1]))  # (batch, 100)
    cells = []
    for step in range(x.shape[1]):
        h, cell_backward = cell(a[:, step], h, hidden_weight, hidden_bias)
        cells.append(cell_backward)

    def backward(g):
        d_a = numpy.empty_like(a)
        d_weight, d_bias = numpy.zeros_like(hidden_weight), numpy.zeros_like(hidden_bias)
        for step in reversed(range(x.shape[1])):
            d_a[:, step], g, weight_part, bias_part = cells[step](g)
            d_weight += weight_part
            d_bias += bias_part
        d_x, d_input_weight, d_input_bias = dense_input(d_a)
        return d_x, d_input_weight, d_weight, d_input_bias, d_bias

    return h, backward


GRU = ("gru.input_weight", "gru.hidden_weight", "gru.input_bias", "gru.hidden_bias")


class Recipe(NumpyRecipe):
    def forward(self, net, task, x, random=None):
        x, embed = embedding(x, net["embedding.weight"])  # (batch, 150, 125)
        self.record("embedding", x)
        no_bias = numpy.zeros(3 * task.hidden)
        x, recur = gru(x, *[net.get(name, no_bias) for name in GRU])  # (batch, 100)
        self.record("gru", x)
        x, classify = dense(x, net["dense.weight"], net["dense.bias"])  # (batch, 2)
        self.record("dense", x)

        def backward(g, d):
            g, d["dense.weight"], d["dense.bias"] = classify(g)
            g, *parts = recur(g)
            d.update(zip(GRU, parts))
            d["embedding.weight"] = embed(g)

        return x, backward

    def loss(self, task, output, y):
        return softmax_cross_entropy(output, y)

    def optimiser(self, net, task):
        return adam(net, learning_rate=task.learning_rate, beta1=task.beta1, beta2=task.beta2, epsilon=task.epsilon)
