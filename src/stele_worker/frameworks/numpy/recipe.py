"""What the recipes of NumPy have in common: a network is {parameter: float64 array}, with the Task's layouts.

``forward(net, task, *inputs, random=None)`` returns (output, backward). In training, ``random`` draws the masks of
dropout, and ``forward`` replaces the running statistics in ``net``. backward(g, d) adds the gradients of the parameters
to d, from the gradient g of the output.
"""

import numpy

from stele_suite import tasks
from stele_suite.oracle import Gradients, load_weights, zero_parameters
from stele_worker.frameworks.recipe import Recipe


class NumpyRecipe(Recipe):
    def network(self, task):
        return zero_parameters({name: array.shape for name, array in tasks.weights(task).items()})

    def predict(self, net, task, *inputs):
        return self.forward(net, task, *inputs)[0]

    def assign(self, net, arrays):
        return load_weights(net, arrays)

    def stored(self, net):
        return net

    def loss_and_gradients(self, net, task, arrays, random):
        *inputs, y = arrays
        output, backward = self.forward(net, task, *inputs, random=random)
        loss, loss_backward = self.loss(task, output, y)
        d = Gradients()
        backward(loss_backward(), d)
        return loss, {name: d[name] for name in net if name in d}

    def gradients(self, net, task):
        random = numpy.random.RandomState(task.seed)
        # a copy: keep the running statistics
        return lambda *arrays: self.loss_and_gradients(dict(net), task, arrays, random)

    def training_step(self, net, task):
        random, update = numpy.random.RandomState(task.seed), self.optimiser(net, task)

        def step(*arrays):
            loss, d = self.loss_and_gradients(net, task, arrays, random)
            update(d)
            return loss

        return step

    def inference_step(self, net, task):
        return lambda *inputs: self.predict(net, task, *inputs)

    def activations(self, net, task):
        return lambda *inputs: self.recorded(lambda *inputs: self.forward(net, task, *inputs), *inputs)
