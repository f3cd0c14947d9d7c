"""The contract of the recipes of the suite: a Task in a framework.

A page, ``stele_suite/recipes/<task>/<framework>.py``, defines ``class Recipe``, a subclass of the Recipe in
``frameworks/<framework>/recipe.py``, which is a subclass of the one here. The page defines, in this order, what is
interesting of the Task in the framework:

LAYOUT      the layout of its images: "NHWC", "NCHW", or None if there are no images
network     the network
forward     what the loss is computed of; default: the output of the network
predict     what inference returns; default: as ``forward``
layers      the layers whose outputs parity compares
loss        the loss, of what ``forward`` returns
optimiser   the optimiser
layout      the layout of a parameter, from that of the Task

Where the default is right, the page leaves the name out. All other names come from the framework's Recipe. A page
overrides one of them only where it has something to say.
"""

import numpy

from stele_worker import layouts


class Recipe:
    """A Task in a framework. ``framework`` is its module in ``stele_worker.frameworks``.

    ``net`` is what ``network`` returned. ``task`` is a value of ``stele_suite.tasks``. A Recipe remembers the shapes of
    the weights that were loaded last, so use one for each Task.
    """

    LAYOUT = None
    TRAINS = True  # False of a framework for inference only, whose networks may lack parameters of training

    def __init__(self, framework):
        self.framework, self.shapes, self.outputs = framework, {}, None

    # the page

    def network(self, task):
        """Return the network. Its parameters are not those of the Task yet."""
        raise NotImplementedError

    def forward(self, net, task, *inputs):
        """Return what the loss is computed of, in float32, such as logits. In training, dropout is on."""
        raise NotImplementedError

    def predict(self, net, task, *inputs):
        """Return what inference returns, in float32: logits or features."""
        return self.forward(net, task, *inputs)

    def layers(self, task):
        """Return the names of the layers whose outputs ``activations`` returns, as the oracle names them."""
        return ()

    def loss(self, task, output, y):
        """Return the loss, a scalar, of what ``forward`` returned and the target."""
        raise NotImplementedError

    def optimiser(self, net, task):
        """Return the optimiser of the network's parameters."""
        raise NotImplementedError

    def layout(self, name, array):
        """Return a parameter of the Task in the layout of the network. It may only reorder the numbers."""
        return array

    # what the framework's Recipe supplies

    def assign(self, net, arrays):
        """Return the network with the parameters ``arrays``: by the Task's names, in the network's layout."""
        raise NotImplementedError

    def stored(self, net):
        """Return the current values of the parameters, by the Task's names: {parameter: value}."""
        raise NotImplementedError

    def training_step(self, net, task):
        """Return step(*inputs, y) -> loss, which updates the parameters.

        Create a step directly before it is used: in an eager framework this switches the network to training or
        inference. A step may have two attributes, with which a training that was killed continues:

        step.state() -> {name: array}   everything that the next steps depend on, as NumPy arrays
        step.restore(state)             continue from such a state
        """
        raise NotImplementedError

    def gradients(self, net, task):
        """Return run(*inputs, y) -> (loss, {parameter: gradient})."""
        raise NotImplementedError

    def inference_step(self, net, task):
        """Return step(*inputs) -> what ``predict`` returns."""
        raise NotImplementedError

    def evaluation_step(self, net, task):
        """Return ``inference_step`` for a network whose training goes on."""
        return self.inference_step(net, task)

    def activations(self, net, task):
        """Return run(*inputs) -> {layer: output} in inference, images channels last; None if it cannot be shown."""
        return None

    # what is the same in all frameworks

    def load(self, net, weights):
        """Return the network with the weights of the Task: {parameter: array}."""
        self.shapes = {name: array.shape for name, array in weights.items()}
        return self.assign(net, {name: self.layout(name, array) for name, array in weights.items()})

    def neutral(self, name, array):
        """Return a parameter or a gradient, a NumPy array in the network's layout, in the layout of the Task.

        This is the inverse of ``layout``, which is applied to the positions of the numbers.
        """
        positions = numpy.arange(array.size).reshape(self.shapes[name])
        order = self.layout(name, positions)
        return array if order is positions else layouts.restore(order, array, positions.shape)

    def record(self, name, value):
        """Return ``value``, the output of a layer, which ``recorded`` keeps."""
        if self.outputs is not None:
            self.outputs[name] = value
        return value

    def recorded(self, run, *inputs):
        """Return {layer: output} of the layers that call ``record`` in run(*inputs), which must not be compiled."""
        self.outputs = outputs = {}
        try:
            run(*inputs)
        finally:
            self.outputs = None
        return outputs
