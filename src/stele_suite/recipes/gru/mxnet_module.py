"""GRU on IMDB in MXNet's symbols: a Module with the fused cell, time before batch."""

import mxnet as mx
import numpy

from stele_worker.frameworks.mxnet_module.recipe import ModuleRecipe, Network

# FusedRNNCell has them in one vector, in this order
GRU = ("gru.input_weight", "gru.hidden_weight", "gru.input_bias", "gru.hidden_bias")


class Recipe(ModuleRecipe):
    def network(self, task):
        x = mx.sym.transpose(mx.sym.var("x"))  # (150, batch)
        weight = mx.sym.var("embedding.weight")
        # with a sparse gradient, Adam would update only the rows in the batch
        x = mx.sym.Embedding(
            x, weight, input_dim=task.vocabulary, output_dim=task.embedding, sparse_grad=False
        )  # (150, batch, 125)
        cell = mx.rnn.FusedRNNCell(task.hidden, mode="gru", prefix="gru_")
        x, _ = cell.unroll(task.length, x, layout="TNC", merge_outputs=True)  # (150, batch, 100)
        x = mx.sym.slice_axis(x, axis=0, begin=-1, end=None)  # the gradient of SequenceLast crashes
        x = mx.sym.squeeze(x, axis=0)  # (batch, 100)
        weight, bias = mx.sym.var("dense.weight"), mx.sym.var("dense.bias")
        return Network(mx.sym.FullyConnected(x, weight, bias, num_hidden=2, flatten=False))  # (batch, 2)

    def optimiser(self, net, task):
        constants = {"learning_rate": task.learning_rate, "beta1": task.beta1, "beta2": task.beta2, "wd": 0.0}
        return mx.optimizer.Adam(lazy_update=False, **constants)

    def before_update(self, task, optimiser):
        # MXNet adds epsilon before it corrects the second moment, the Task adds it after: so correct epsilon by the
        # same factor
        optimiser.epsilon = task.epsilon * (1 - task.beta2 ** (optimiser.num_update + 1)) ** 0.5

    def assign(self, net, arrays):
        fused = numpy.concatenate([arrays[name].ravel() for name in GRU])
        others = {name: array for name, array in arrays.items() if name not in GRU}
        return super().assign(net, dict(others, gru_parameters=fused))

    def named(self, arrays):
        parts = dict(arrays)
        rest = parts.pop("gru_parameters")
        for name in GRU:
            size = numpy.prod(self.shapes[name])
            parts[name], rest = rest[:size].reshape(self.shapes[name]), rest[size:]
        return parts
