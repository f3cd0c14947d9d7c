"""GRU on IMDB in Paddle 1: imperative training, then Paddle Inference; a cell called 150 times."""

import paddle.fluid as fluid
from paddle.fluid.dygraph import Embedding, Linear
from paddle.fluid.layers import (
    fill_constant_batch_size_like,
    mean,
    sigmoid,
    softmax_with_cross_entropy,
    split,
    tanh,
    unstack,
)

from stele_worker.frameworks.paddle1.recipe import Adam, Paddle1Recipe


class Classifier(fluid.dygraph.Layer):
    def __init__(self, task):
        super().__init__()
        self.size = task.hidden
        self.embedding = Embedding([task.vocabulary, task.embedding], is_sparse=False, padding_idx=None)
        # two products, because Paddle's GRUs reset before the second product and have one bias
        self.gru_input = Linear(task.embedding, 3 * task.hidden)
        self.gru_hidden = Linear(task.hidden, 3 * task.hidden)
        self.dense = Linear(task.hidden, 2)

    def cell(self, h, xrz, xn):
        hrz, hn = split(self.gru_hidden(h), [2 * self.size, self.size], dim=1)
        r, z = split(sigmoid(xrz + hrz), 2, dim=1)  # (batch, 100) each
        n = tanh(xn + r * hn)
        return n + z * (h - n)  # (1 - z) * n + z * h with one operation less

    def forward(self, x):
        x = self.gru_input(self.embedding(x))  # (batch, 150, 300): one product for all steps
        xrz, xn = split(x, [2 * self.size, self.size], dim=2)
        h = fill_constant_batch_size_like(x, [-1, self.size], "float32", 0.0)  # (batch, 100)
        for gates, candidate in zip(unstack(xrz, axis=1), unstack(xn, axis=1)):
            h = self.cell(h, gates, candidate)
        return self.dense(h)  # (batch, 2)


class Recipe(Paddle1Recipe):
    # MKL-DNN does not speed up 2,000 small operations, and Paddle needs half a minute to analyse them
    MKLDNN = False
    NAMES = {
        "gru.input_weight": "gru_input.weight",
        "gru.hidden_weight": "gru_hidden.weight",
        "gru.input_bias": "gru_input.bias",
        "gru.hidden_bias": "gru_hidden.bias",
    }

    def network(self, task):
        return Classifier(task)

    def layers(self, task):
        return ("embedding", "dense")

    def loss(self, task, output, y):
        return mean(softmax_with_cross_entropy(output, y))

    def optimiser(self, net, task):
        return Adam(net, task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 and name != "embedding.weight" else array  # dense: (in, out)
