"""What the recipes of Lasagne have in common: steps and gradients."""

from lasagne.layers import get_all_layers, get_all_params, get_output

from stele_worker.frameworks.recipe import Recipe

import theano  # isort: skip
from theano import tensor as T  # isort: skip

KINDS = {"W": "weight", "b": "bias"}  # Lasagne's name -> the Task's


class LasagneRecipe(Recipe):
    """A network is its last layer; the first one has the variable of the input.

    ``forward``, ``predict`` and ``loss`` take and return symbols. ``optimiser`` returns update(loss, parameters) ->
    updates of shared variables.
    """

    def forward(self, net, task, x):
        return get_output(net, x, deterministic=False)

    def predict(self, net, task, x):
        return get_output(net, x, deterministic=True)

    def named(self, net, values):
        """Return values of the parameters, which are in the network's order, by the Task's names."""
        return {task_name(parameter): value for parameter, value in zip(parameters(net), values)}

    def assign(self, net, arrays):
        for parameter in parameters(net):
            parameter.set_value(arrays[task_name(parameter)])
        return net

    def stored(self, net):
        return self.named(net, [parameter.get_value() for parameter in parameters(net)])

    def symbols(self, net, task):
        """Return the symbols (x, y, loss) of training."""
        x, y = input_of(net), T.ivector()
        return x, y, self.loss(task, self.forward(net, task, x), y)

    def training_step(self, net, task):
        x, y, loss = self.symbols(net, task)
        update = self.optimiser(net, task)
        return make_function([x, y], loss, update(loss, parameters(net)))

    def gradients(self, net, task):
        x, y, loss = self.symbols(net, task)
        differentiate = make_function([x, y], [loss] + T.grad(loss, parameters(net)))

        def run(*arrays):
            loss, *grads = differentiate(*arrays)
            return loss, self.named(net, grads)

        return run

    def inference_step(self, net, task):
        x = input_of(net)
        return make_function([x], self.predict(net, task, x))


def parameters(net):
    return get_all_params(net, trainable=True)


def task_name(parameter):
    """Return ``dense.weight`` of ``dense.W``."""
    *layers, kind = parameter.name.split(".")
    return ".".join(layers + [KINDS.get(kind, kind)])


def input_of(net):
    return get_all_layers(net)[0].input_var


def make_function(inputs, outputs, updates=None):
    """Return a Theano function that is compiled at its first call, so that the first step includes compilation."""
    functions = []

    def call(*arrays):
        if not functions:
            functions.append(theano.function(inputs, outputs, updates=updates))
        return functions[0](*arrays)

    return call
