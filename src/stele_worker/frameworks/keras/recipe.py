"""What the recipes of Keras 3 have in common on every backend: names of parameters, steps and optimisers.

Keras has no API for gradients, so ``backend``, one of ``on_jax``, ``on_tensorflow`` and ``on_torch``, makes the steps:

make_gradient_function(net, loss, faster_with_xla)  run(*inputs, y) -> (loss, a gradient of each trainable variable)
make_update(net, optimiser, loss, faster_with_xla)  step(*inputs, y) -> loss, which updates the parameters
make_model_step(net, model, faster_with_xla)        step(*inputs) -> the output of a model with the weights of ``net``

loss(y, output) is the loss of the output of the network. Only TensorFlow asks whether a network is faster with XLA.
"""

import importlib

import keras

from stele_worker import frameworks
from stele_worker.frameworks.keras.network import parameters, write_back
from stele_worker.frameworks.recipe import Recipe

framework = frameworks.load("keras")
backend = importlib.import_module("stele_worker.frameworks.keras.on_" + framework.BACKEND)

# the Task's names of parameters that Keras' layers name otherwise
KINDS = {
    "kernel": "weight",
    "gamma": "weight",
    "embeddings": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}


class KerasRecipe(Recipe):
    """A network is a functional model, and the loss is that of its output.

    predict(net, task, *inputs) returns a symbolic tensor, which is computed of the symbolic inputs of the network.
    """

    XLA = False  # whether the network is faster with XLA, also on a CPU

    def predict(self, net, task, *inputs):
        return net.outputs[0]

    def name_of(self, variable):
        """Return the Task's name of a variable of a layer."""
        layer, kind = variable.path.split("/")[-2:]
        return layer.replace("_", ".") + "." + KINDS.get(kind, kind)

    def named(self, variables, values):
        """Return {the Task's name of the variable: value}."""
        return dict(zip(map(self.name_of, variables), values))

    def assign(self, net, arrays):
        for variable in net.weights:
            variable.assign(arrays[self.name_of(variable)])
        return net

    def stored(self, net):
        return self.named(net.weights, parameters(net))

    def loss_function(self, task):
        """Return compute(y, output) -> loss, with the arguments in the order of Keras."""
        return lambda y, output: self.loss(task, output, y)

    def training_step(self, net, task):
        return make_training_step(net, self.optimiser(net, task), self.loss_function(task), self.XLA)

    def gradients(self, net, task):
        differentiate = make_gradient_function(net, self.loss_function(task), self.XLA)

        def run(*arrays):
            value, grads = differentiate(*arrays)
            return value, self.named(net.trainable_variables, grads)

        return run

    def inference_step(self, net, task):
        return make_model_step(net, keras.Model(net.inputs, self.predict(net, task, *net.inputs)), self.XLA)

    def output_of(self, net, name):
        """Return the tensor of a network that is the output of a layer of the Task."""
        return net.get_layer(plain(name)).output

    def activations(self, net, task):
        if not self.layers(task):
            return None
        return outputs(net, {name: self.output_of(net, name) for name in self.layers(task)}, self.XLA)


def make_gradient_function(net, loss, faster_with_xla=False):
    """Return run(*inputs, y) -> (loss, a gradient for each of net.trainable_variables)."""
    return backend.make_gradient_function(net, loss, faster_with_xla)


def make_training_step(net, optimiser, loss, faster_with_xla=False):
    """Return step(*inputs, y) -> loss, which updates the parameters."""
    optimiser.build(net.trainable_variables)
    step = backend.make_update(net, optimiser, loss, faster_with_xla)
    add_state(step, net, optimiser)
    return step


def compile_function(net, function):
    if framework.BACKEND != "tensorflow":
        return framework.compiled(function)
    return framework.compiled(function, xla=backend.uses_xla(net))


def make_model_step(net, model, faster_with_xla=False):
    """Return step(*inputs) -> the output of a ``model`` that has the weights of ``net``, for inference."""
    return backend.make_model_step(net, model, faster_with_xla)


def outputs(net, tensors, faster_with_xla=False):
    """Return run(*inputs) -> {name: array} of ``tensors``, {name: tensor of the network}; images channels last."""
    first = keras.config.image_data_format() == "channels_first"
    images_last = [
        keras.ops.moveaxis(tensor, 1, -1) if first and tensor.ndim == 4 else tensor for tensor in tensors.values()
    ]
    run = make_model_step(net, keras.Model(net.inputs, images_last), faster_with_xla)
    return lambda *inputs: dict(zip(tensors, run(*inputs)))


def add_state(step, net, optimiser):
    """Give ``step`` a state: of the network, its random generators and the optimiser. See ``frameworks.recipe``."""
    variables = net.variables + optimiser.variables

    def state():
        write_back(net)
        return to_arrays(variables)

    def restore(saved):
        write_back(net)
        from_arrays(variables, saved)

    step.state, step.restore = state, restore
    if framework.BACKEND == "torch":
        add_random_state(step)


def add_random_state(step):
    """Add the random generator of PyTorch, from which dropout draws, to the state of ``step``."""
    from stele_worker.frameworks.torch.recipe import random_state, restore_random

    state, restore = step.state, step.restore

    def restore_all(saved):
        restore(saved)
        restore_random(saved["random"])

    step.state, step.restore = lambda: dict(state(), random=random_state()), restore_all


def seen_by_optimiser(variable):
    """Return what an optimiser may receive as a variable: on TensorFlow its value, or the copy of each device."""
    return [variable, variable.value] + list(
        framework.native.local(variable.value) if framework.BACKEND == "tensorflow" else ()
    )


def to_arrays(variables, prefix=""):
    """Return the values of variables as NumPy arrays, named by their position."""
    return {prefix + str(number): keras.ops.convert_to_numpy(variable) for number, variable in enumerate(variables)}


def from_arrays(variables, arrays, prefix=""):
    for number, variable in enumerate(variables):
        variable.assign(arrays[prefix + str(number)])


def set_policy(task):
    """Set the arithmetic of layers created from now on; their parameters are always float32."""
    if framework.precision != "default":
        keras.config.set_dtype_policy("float32" if task.dtype == "float32" else "mixed_" + task.dtype)


def plain(name):
    return name.replace(".", "_")  # PyTorch does not allow a dot in a name


def adam(task):
    """Return Adam with epsilon outside the root and both moments bias-corrected."""
    backends = type(keras.optimizers.Adam())  # with PyTorch it updates all parameters at once

    class Adam(backends):
        # Keras adds epsilon before it corrects the second moment, the Task adds it after: so correct
        # epsilon by the same factor; without it the tenth loss of the GRU is 6e-4 off

        @property
        def epsilon(self):
            step = keras.ops.cast(self.iterations + 1, "float32")
            return self.constant * keras.ops.sqrt(1 - self.beta_2**step)

        @epsilon.setter
        def epsilon(self, constant):
            self.constant = constant

    return Adam(task.learning_rate, beta_1=task.beta1, beta_2=task.beta2, epsilon=task.epsilon, amsgrad=False)
