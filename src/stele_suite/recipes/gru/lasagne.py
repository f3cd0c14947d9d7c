"""GRU on IMDB in Lasagne: one Theano function per step, scan over time, updates of shared variables."""

import lasagne
import numpy
import theano
from lasagne.layers import DenseLayer, EmbeddingLayer, Gate, GRULayer, InputLayer, SliceLayer
from lasagne.nonlinearities import identity, sigmoid, softmax, tanh
from theano import tensor as T

from stele_worker.frameworks.lasagne.recipe import LasagneRecipe

# in the Task's order; Lasagne multiplies the new state by z and the old by 1 - z, so its gate is negated
GATES = (("resetgate", 1), ("updategate", -1), ("hidden_update", 1))
GRU = {"gru.input_weight": "gru.W_in_to_", "gru.hidden_weight": "gru.W_hid_to_", "gru.input_bias": "gru.b_"}


class Recipe(LasagneRecipe):
    def network(self, task):
        net = InputLayer((None, task.length), T.imatrix())
        net = EmbeddingLayer(net, task.vocabulary, task.embedding, name="embedding")  # (batch, 150, 125)
        net = GRULayer(  # (batch, 150, 100)
            net,
            task.hidden,
            resetgate=Gate(W_cell=None, nonlinearity=sigmoid),
            updategate=Gate(W_cell=None, nonlinearity=sigmoid),
            hidden_update=Gate(W_cell=None, nonlinearity=tanh),
            hid_init=lasagne.init.Constant(0.0),
            learn_init=False,
            unroll_scan=False,  # 150 unrolled steps exceed Python's recursion limit
            precompute_input=True,  # one product for all steps
            name="gru",
        )
        net = SliceLayer(net, -1, axis=1)  # (batch, 100)
        return DenseLayer(net, 2, nonlinearity=identity, name="dense")  # (batch, 2)

    def loss(self, task, output, y):
        return lasagne.objectives.categorical_crossentropy(softmax(output), y).mean()

    def optimiser(self, net, task):
        # Lasagne adds epsilon before it corrects the second moment, the Task adds it after: so correct epsilon by the
        # same factor
        count = theano.shared(numpy.float32(0))
        epsilon = task.epsilon * T.sqrt(1 - task.beta2 ** (count + 1))
        constants = {"learning_rate": task.learning_rate, "beta1": task.beta1, "beta2": task.beta2}

        def update(loss, parameters):
            updates = lasagne.updates.adam(loss, parameters, epsilon=epsilon, **constants)
            updates[count] = count + 1
            return updates

        return update

    def layout(self, name, array):
        return array if array.ndim == 1 or name == "embedding.weight" else array.T  # (in, out)

    def assign(self, net, arrays):
        of_gates = {}
        for name, prefix in GRU.items():
            for (gate, sign), part in zip(GATES, numpy.split(arrays[name], 3, axis=-1)):
                of_gates[prefix + gate] = sign * part
        return super().assign(net, dict(arrays, **of_gates))

    def named(self, net, values):
        arrays = super().named(net, values)
        for name, prefix in GRU.items():
            parts = [sign * arrays.pop(prefix + gate) for gate, sign in GATES]
            arrays[name] = numpy.concatenate(parts, axis=-1)
        return arrays
