"""GRU on IMDB in Flax: nnx.RNN over a GRU cell, one jitted step, the optimiser of optax."""

import optax
from flax import nnx

from stele_worker.frameworks.flax.recipe import FlaxRecipe


class GRUCell(nnx.GRUCell):
    """The cell of Flax has no bias for the hidden state, and the Task's has one for each gate."""

    def __init__(self, inputs, hidden, dtype, rngs):
        super().__init__(inputs, hidden, dtype=dtype, rngs=rngs)
        self.dense_h = nnx.Linear(hidden, 3 * hidden, dtype=dtype, rngs=rngs)


class Classifier(nnx.Module):
    def __init__(self, task, rngs):
        self.embedding = nnx.Embed(task.vocabulary, task.embedding, dtype=task.dtype, rngs=rngs)
        cell = GRUCell(task.embedding, task.hidden, task.dtype, rngs)
        self.gru = nnx.RNN(cell, return_carry=True, rngs=rngs)
        self.dense = nnx.Linear(task.hidden, 2, dtype=task.dtype, rngs=rngs)

    def __call__(self, x, record):
        x = record("embedding", self.embedding(x))  # (batch, 150, 125)
        h, _ = self.gru(x)  # (batch, 100)
        return record("dense", self.dense(h))  # (batch, 2)


class Recipe(FlaxRecipe):
    RENAMED = {
        "gru.input_weight": "gru.cell.dense_i.weight",
        "gru.hidden_weight": "gru.cell.dense_h.weight",
        "gru.input_bias": "gru.cell.dense_i.bias",
        "gru.hidden_bias": "gru.cell.dense_h.bias",
    }

    def network(self, task):
        return self.build(lambda rngs: Classifier(task, rngs), task)

    def loss(self, task, output, y):
        return optax.softmax_cross_entropy_with_integer_labels(output, y).mean()

    def optimiser(self, net, task):
        return optax.adam(task.learning_rate, task.beta1, task.beta2, task.epsilon)

    def layout(self, name, array):
        return array if array.ndim == 1 or name == "embedding.weight" else array.T  # (in, out)
