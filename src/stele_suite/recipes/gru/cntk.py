"""GRU on IMDB in CNTK: Fold of a step function over the sequence axis, Trainer.train_minibatch."""

import cntk as C
import numpy
from cntk import layers, sequence

from stele_worker.frameworks.cntk.recipe import CntkRecipe


class Recipe(CntkRecipe):
    def network(self, task):
        embedding = C.parameter((task.vocabulary, task.embedding), name="embedding.weight")
        input_weight = C.parameter((task.embedding, 3 * task.hidden), name="gru.input_weight")
        hidden_weight = C.parameter((task.hidden, 3 * task.hidden), name="gru.hidden_weight")
        input_bias = C.parameter(3 * task.hidden, name="gru.input_bias")
        hidden_bias = C.parameter(3 * task.hidden, name="gru.hidden_bias")
        weight, bias = C.parameter((task.hidden, 2), name="dense.weight"), C.parameter(2, name="dense.bias")

        def gate(parameter, index):
            return C.slice(parameter, -1, index * task.hidden, (index + 1) * task.hidden)

        def sums(h, x, index):
            # one product per gate, so that no step slices; CNTK computes terms without h for all steps at once
            b = gate(input_bias, index) + gate(hidden_bias, index)
            return C.times(x, gate(input_weight, index)) + b + C.times(h, gate(hidden_weight, index))

        def cell(h, x):
            r = C.sigmoid(sums(h, x, 0))  # (batch, 100)
            z = C.sigmoid(sums(h, x, 1))
            a = C.times(x, gate(input_weight, 2)) + gate(input_bias, 2)
            n = C.tanh(a + r * (C.times(h, gate(hidden_weight, 2)) + gate(hidden_bias, 2)))
            return n + z * (h - n)  # (1 - z) * n + z * h with one operation less

        x = C.gather(embedding, sequence.input_variable(()))  # (batch, 150, 125), with a dense gradient
        h = layers.Fold(cell, go_backwards=False, initial_state=0)(x)  # (batch, 100)
        return C.times(h, weight) + bias  # (batch, 2)

    def variables(self, net):
        return {parameter.name: parameter for parameter in net.parameters}

    def loss(self, task, output, y):
        return C.cross_entropy_with_softmax(output, C.one_hot(y, 2))

    def optimiser(self, net, task):
        def schedule(values):
            # the schedule counts samples
            return C.learning_parameter_schedule(list(values), C.learners.IGNORE, epoch_size=task.batch)

        # CNTK adds epsilon before it corrects the second moment; without a change the tenth loss is 6e-4 off.
        # A momentum that rises from zero gives a corrected moment, and the rate inverts CNTK's correction
        count = numpy.arange(1, task.epochs * (task.train // task.batch) + 1)
        momentum = task.beta2 * (1 - task.beta2 ** (count - 1.0)) / (1 - task.beta2**count)
        return C.adam(
            net.parameters,
            lr=schedule(task.learning_rate / numpy.sqrt(1 - momentum**count)),
            momentum=task.beta1,
            unit_gain=True,  # multiply the gradient by 1 - beta1 in the first moment
            variance_momentum=schedule(momentum),
            epsilon=task.epsilon,
            adamax=False,
            minibatch_size=C.learners.IGNORE,  # rates are per step, for the mean gradient, at any batch size
        )

    def layout(self, name, array):
        return array if name == "embedding.weight" else array.T  # (in, out)
