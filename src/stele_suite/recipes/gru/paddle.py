"""GRU on IMDB in Paddle 3: eager nn.GRU in training, Paddle Inference with oneDNN."""

from paddle import nn
from paddle.nn.functional import cross_entropy

from stele_worker.frameworks.paddle.recipe import PaddleRecipe, adam


class Classifier(nn.Layer):
    def __init__(self, task):
        super().__init__()
        self.embedding = nn.Embedding(task.vocabulary, task.embedding, padding_idx=None, sparse=False)
        self.gru = nn.GRU(task.embedding, task.hidden, time_major=False)
        self.dense = nn.Linear(task.hidden, 2)

    def forward(self, x):
        x = self.embedding(x)  # (batch, 150, 125)
        x, _ = self.gru(x)  # (batch, 150, 100)
        return self.dense(x[:, -1])  # (batch, 2)


class Recipe(PaddleRecipe):
    NAMES = {
        "gru.input_weight": "gru.weight_ih_l0",
        "gru.hidden_weight": "gru.weight_hh_l0",
        "gru.input_bias": "gru.bias_ih_l0",
        "gru.hidden_bias": "gru.bias_hh_l0",
    }

    def network(self, task):
        return Classifier(task)

    def layers(self, task):
        return ("embedding", "dense")

    def loss(self, task, output, y):
        return cross_entropy(output, y)

    def optimiser(self, net, task):
        return adam(net, task)

    def layout(self, name, array):
        return array.T if name == "dense.weight" else array  # (in, out)

    def is_of_task(self, name):
        return ".cell." not in name  # a second name of each parameter of nn.GRU
