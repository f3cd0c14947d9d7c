"""What the recipes of CNTK have in common: parameters of layers, steps and gradients."""

import cntk as C
import numpy

from stele_worker.frameworks.recipe import Recipe

# the Task's names of the variables of a layer
NAMES = {
    "W": "weight",
    "b": "bias",
    "scale": "weight",
    "bias": "bias",
    "aggregate_mean": "running_mean",
    "aggregate_variance": "running_var",
}


class CntkRecipe(Recipe):
    """A network is a function of CNTK, whose layers have the names of the Task. It contains its input.

    So ``forward`` and ``predict`` receive no inputs, and return functions. ``loss`` is that of each sample.
    """

    def forward(self, net, task):
        return net

    def variables(self, net):
        """Return {parameter: its variable}."""
        result = {}
        for layer in {name.rpartition(".")[0] for name in self.shapes}:
            block = net.find_by_name(layer)
            for variable in block.parameters + block.constants:
                if variable.name in NAMES:  # a normalisation also counts its samples
                    result["{}.{}".format(layer, NAMES[variable.name])] = variable
        return result

    def assign(self, net, arrays):
        for name, variable in self.variables(net).items():
            variable.value = numpy.ascontiguousarray(arrays[name]).reshape(variable.shape)
        return net

    def stored(self, net):
        return {name: variable.value for name, variable in self.variables(net).items()}

    def differentiable(self, net, task):
        """Return the input, a variable for labels, and the loss of each sample, a function of both."""
        labels = C.input_variable(())
        return net.arguments[0], labels, self.loss(task, self.forward(net, task), labels)

    def training_step(self, net, task):
        inputs, labels, losses = self.differentiable(net, task)
        trainer = C.Trainer(None, losses, self.optimiser(net, task))

        def step(x, y):
            trainer.train_minibatch({inputs: x, labels: y})
            return trainer.previous_minibatch_loss_average

        return step

    def gradients(self, net, task):
        inputs, labels, losses = self.differentiable(net, task)
        loss = C.reduce_mean(losses, axis=C.Axis.all_axes())
        names = {variable: name for name, variable in self.variables(net).items() if variable.is_parameter}

        def run(x, y):
            grads, value = loss.grad({inputs: x, labels: y}, wrt=list(names), outputs=[loss.output])
            return value, {names[variable]: grad for variable, grad in grads.items()}

        return run

    def inference_step(self, net, task):
        output = self.predict(net, task)
        inputs = output.arguments[0]
        return lambda x: output.eval({inputs: x}, as_numpy=False)


def sgd(net, task):
    return C.momentum_sgd(
        net.parameters,
        lr=task.learning_rate,
        momentum=task.momentum,
        unit_gain=False,
        minibatch_size=C.learners.IGNORE,  # rates are per step, for the mean gradient, at any batch size
    )
