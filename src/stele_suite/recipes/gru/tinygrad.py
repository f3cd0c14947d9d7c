"""GRU on IMDB in tinygrad: a loop over cells in precompiled functions, one captured step, nn.optim.Adam."""

from tinygrad import Tensor, function, nn
from tinygrad.nn.state import get_parameters

from stele_worker.frameworks.tinygrad.recipe import TinygradRecipe

# steps of the recurrence in a function, which tinygrad schedules once and calls for each part of the sequence. A kernel
# on a CPU has at most 63 arguments, and adds the gradients of a weight from all steps of the function
PART = 5


@function(precompile=True, precompile_backward=True)
def recur(x, h, weight, bias):
    """Return the hidden state after the steps of x: (batch, steps, 300), with the input's part of the gates."""
    for step in range(x.shape[1]):
        r, z, n = x[:, step].chunk(3, dim=1)
        hidden_r, hidden_z, hidden_n = h.linear(weight.T, bias).chunk(3, dim=1)
        z = (z + hidden_z).sigmoid()
        n = (n + (r + hidden_r).sigmoid() * hidden_n).tanh()
        h = ((1 - z) * n + z * h).contiguous()
    return h


class Classifier:
    def __init__(self, task):
        self.hidden = task.hidden
        self.embedding = nn.Embedding(task.vocabulary, task.embedding)
        self.input = nn.Linear(task.embedding, 3 * task.hidden)
        self.recurrent = nn.Linear(task.hidden, 3 * task.hidden)
        self.dense = nn.Linear(task.hidden, 2)

    def __call__(self, x, record):
        x = record("embedding", self.embedding(x))  # (batch, 150, 125)
        x = self.input(x)  # (batch, 150, 300)
        h = Tensor.zeros(x.shape[0], self.hidden).contiguous()  # (batch, 100)
        for part in x.split(PART, dim=1):
            h = recur(part, h, self.recurrent.weight, self.recurrent.bias)
        return record("dense", self.dense(h))  # (batch, 2)


class Recipe(TinygradRecipe):
    RENAMED = {
        "gru.input_weight": "input.weight",
        "gru.hidden_weight": "recurrent.weight",
        "gru.input_bias": "input.bias",
        "gru.hidden_bias": "recurrent.bias",
    }

    def network(self, task):
        return Classifier(task)

    def loss(self, task, output, y):
        return output.sparse_categorical_crossentropy(y)

    def optimiser(self, net, task):
        betas = {"b1": task.beta1, "b2": task.beta2}
        return nn.optim.Adam(get_parameters(net), lr=task.learning_rate, eps=task.epsilon, **betas)
