"""What the recipes of TensorFlow 2 have in common: steps, gradients and optimisers."""

from functools import partial

import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from stele_worker import frameworks
from stele_worker.frameworks.recipe import Recipe
from stele_worker.ranks import ranks

framework = frameworks.load("tensorflow")


class TensorFlowRecipe(Recipe):
    """A network is a tf.Module. Its variable ``layer[0].norm.weight`` is the Task's parameter ``layer.0.norm.weight``.

    forward(net, task, *inputs, training=None): ``training`` is the generator from which dropout draws, or None in
    inference. A network calls ``record`` with the output of each layer that parity compares.
    """

    XLA = False  # whether the steps are faster with XLA

    def uses_xla(self):
        return self.XLA

    def forward(self, net, task, *inputs, training=None):
        return net(*inputs, self.record, training)

    def assign(self, net, arrays):
        variables = self.stored(net)
        for name, array in arrays.items():
            variables[name].assign(array)
        return net

    def stored(self, net):
        return dict(named_variables(net))

    def trained(self, net):
        """Return the parameters that the optimiser updates: {parameter: variable}."""
        return {name: variable for name, variable in self.stored(net).items() if variable.trainable}

    def loss_function(self, net, task, training):
        """Return compute(*inputs, y) -> loss."""

        def compute(*arrays):
            *inputs, y = arrays
            return self.loss(task, self.forward(net, task, *inputs, training=training), y)

        return compute

    def training_step(self, net, task):
        weights, optimiser, training = self.trained(net), self.optimiser(net, task), make_random(task)
        update, loss = partial(optimiser.update, weights), self.loss_function(net, task, training)
        step = make_training_step(loss, weights, update, self.uses_xla())
        add_state(step, (net.variables, optimiser.variables, training.state))
        return step

    def gradients(self, net, task):
        xla, loss = self.uses_xla(), self.loss_function(net, task, make_random(task))
        differentiate = differentiated_on_all_devices(loss, self.trained(net), xla)
        return self.framework.compiled(lambda *arrays: first_copies(differentiate(*arrays)), xla=xla)

    def inference_step(self, net, task):
        xla = self.uses_xla()
        run = inferred_on_all_devices(lambda *inputs: self.predict(net, task, *inputs), xla)
        step = self.framework.compiled(run, xla=xla)
        return step if self.framework.mode != "frozen" else frozen(step, self.framework.uses_jit(xla))

    def activations(self, net, task):
        return lambda *inputs: self.recorded(lambda *inputs: self.forward(net, task, *inputs), *inputs) or None


def named_variables(part, name=""):
    """Yield (name, variable) of a module: ``layer.0.norm.weight`` of its variable ``layer[0].norm.weight``."""
    if isinstance(part, tf.Variable):
        yield name, part
    elif isinstance(part, (list, tf.Module)):
        children = enumerate(part) if isinstance(part, list) else vars(part).items()
        for key, child in children:
            yield from named_variables(child, "{}.{}".format(name, key) if name else key)


class Linear(tf.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = tf.Variable(tf.zeros((inputs, outputs)))
        self.bias = tf.Variable(tf.zeros(outputs))

    def __call__(self, x):
        return tf.nn.bias_add(x @ tf.cast(self.weight, x.dtype), tf.cast(self.bias, x.dtype))


class Embedding(tf.Module):
    def __init__(self, count, size):
        super().__init__()
        self.weight = tf.Variable(tf.zeros((count, size)))

    def __call__(self, numbers):
        return tf.gather(self.weight, numbers)


def make_statistic(channels, value):
    """Return a running statistic. Each device changes its own copy, and their mean is read."""
    each, mean = tf.VariableSynchronization.ON_READ, tf.VariableAggregation.MEAN
    return tf.Variable(tf.fill([channels], value), trainable=False, synchronization=each, aggregation=mean)


def for_each_device(function, xla):
    """Return a function as each of several devices executes it: compiled by XLA if one device would use XLA."""
    if framework.strategy is None or not framework.uses_jit(xla):
        return function
    jitted = tf.function(function, autograph=False, jit_compile=True)
    return lambda *arrays: jitted(*arrays)  # strategy.run would make one function of XLA for all devices


def differentiated(loss, weights):
    """Return run(*inputs, y) -> (loss, {parameter: gradient}), not compiled."""
    loss = in_shards(loss)

    def run(*arrays):
        with tf.GradientTape() as tape:
            value = loss(*arrays)
        grads = tape.gradient(value, weights)
        # the gradient of an embedding has only some rows, but the optimiser updates all
        return value, {name: tf.convert_to_tensor(grad) for name, grad in grads.items()}

    return run


def in_shards(loss):
    """Return a loss that computes a batch in as many shards as are configured, as a reference for several devices."""
    return ranks.mean_over_shards(loss, tf.split)


def differentiated_on_all_devices(loss, weights, xla):
    """Return run as ``differentiated``; with several devices each has the means of loss and gradients over all."""
    differentiate = for_each_device(differentiated(loss, weights), xla)
    return all_reduced(differentiate, tf.distribute.ReduceOp.MEAN)


def all_reduced(function, operation):
    """Return a function whose result each device has: the mean or the sum of what ``function`` returns on them."""
    if framework.strategy is None:
        return function

    def run(*arrays):
        return tf.distribute.get_replica_context().all_reduce(operation, function(*arrays))

    return on_each_part(run)


def on_each_part(function):
    """Return a function that each device executes with its part of the arrays; the result has a value of each."""
    return lambda *arrays: framework.strategy.run(function, arrays)


def first_copies(values):
    """Return the copies of nested values on the first of several devices."""
    return tf.nest.map_structure(lambda value: framework.local(value)[0], values)


def on_all_devices(update, weights):
    """Return an update that each device applies to its copies of the variables."""
    if framework.strategy is None:
        return update
    anchor = next(iter(weights.values()))  # names the devices

    def run(grads):
        framework.strategy.extended.update(anchor, lambda _, local: update(local), args=(grads,))

    return run


def make_training_step(loss, weights, update, xla):
    """Return step(*inputs, y) -> loss, which gives the gradients to ``update``."""
    apply = on_all_devices(update, weights)

    def make_step(differentiate):
        @framework.compiled(xla=xla)
        def step(*arrays):
            value, grads = differentiate(*arrays)
            apply(grads)
            return first_copies(value)

        return step

    step = make_step(differentiated_on_all_devices(loss, weights, xla))
    if framework.strategy is not None:
        without = make_step(on_each_part(for_each_device(differentiated(loss, weights), xla)))
        step = with_communication(step, without, weights)
    return step


def with_communication(step, without, weights):
    """Return a step of several devices that can leave its communication out, for which it calls ``without``."""
    communication = Communication(weights)

    def either(*arrays):
        return step(*arrays) if communication.exchanges else without(*arrays)

    either.communication = lambda: communication
    return either


class Communication:
    """The mean of loss and gradients over the devices. A step can leave it out, and it can be done alone.

    ``exchanges`` says whether the next step has it.
    """

    def __init__(self, weights):
        self.exchanges, self.weights, self.zeros = True, weights, None
        self.run = framework.compiled(all_reduced(lambda *values: values, tf.distribute.ReduceOp.MEAN))

    def alone(self):
        """Exchange as many numbers as a step does."""
        if self.zeros is None:
            self.zeros = [zeros_on_devices(())] + [zeros_on_devices(weight.shape) for weight in self.weights.values()]
        return self.run(*self.zeros)

    def meet(self):
        """Return at once: one process begins for all devices."""


def add_state(step, variables):
    """Give ``step`` a state, which consists of ``variables``: see ``stele_worker.frameworks.recipe``."""
    variables = tf.nest.flatten(variables)

    def restore(state):
        for number, variable in enumerate(variables):
            variable.assign(state[str(number)])

    step.state = lambda: {str(number): variable.numpy() for number, variable in enumerate(variables)}
    step.restore = restore


def zeros_like(weights):
    return {name: tf.Variable(tf.zeros_like(weight)) for name, weight in weights.items()}


def dropout(x, rate, training):
    """Drop numbers out, and scale the others up; ``training`` is a generator, or None in inference."""
    if training is None or rate == 0:
        return x
    return tf.nn.experimental.general_dropout(x, rate, uniform_sampler=training.uniform)


def make_random(task):
    return tf.random.Generator.from_seed(task.seed, alg="philox")  # draws faster than tf.nn.dropout


class SGD(tf.Module):
    """SGD with the learning rate outside the velocity."""

    def __init__(self, task, weights):
        super().__init__()
        self.learning_rate, self.momentum = task.learning_rate, task.momentum
        self.velocity = zeros_like(weights)

    def update(self, weights, grads):
        for name, weight in weights.items():
            self.velocity[name].assign(self.momentum * self.velocity[name] + grads[name])
            weight.assign_sub(self.learning_rate * self.velocity[name])


class Adam(tf.Module):
    """Adam with epsilon outside the root and both moments bias-corrected."""

    def __init__(self, task, weights):
        super().__init__()
        self.task, self.count = task, tf.Variable(0.0)
        self.mean, self.square = zeros_like(weights), zeros_like(weights)

    def update(self, weights, grads):
        task, mean, square = self.task, self.mean, self.square
        self.count.assign_add(1.0)
        for name, weight in weights.items():
            mean[name].assign(task.beta1 * mean[name] + (1 - task.beta1) * grads[name])
            square[name].assign(task.beta2 * square[name] + (1 - task.beta2) * grads[name] * grads[name])
            m = mean[name] / (1 - task.beta1**self.count)
            s = square[name] / (1 - task.beta2**self.count)
            weight.assign_sub(task.learning_rate * m / (tf.sqrt(s) + task.epsilon))


def inferred_on_all_devices(predict, xla):
    """Return run(*inputs) -> outputs, of which each device computes its part."""
    if framework.strategy is None:
        return predict
    run = for_each_device(predict, xla)
    return lambda *inputs: framework.strategy.run(run, inputs)


def frozen(step, jit):
    """Return a function with its variables as constants, made at the first call with inputs of these shapes."""
    functions = {}

    def run(*batch):
        shapes = tuple(tuple(array.shape) for array in batch)
        if shapes not in functions:
            function = step.get_concrete_function(*batch)
            functions[shapes] = freeze(function, jit), function.structured_outputs
        run_frozen, structure = functions[shapes]
        return tf.nest.pack_sequence_as(structure, list(run_frozen(*batch)))

    return run


def freeze(function, jit):
    """Return a traced function with its variables as constants; ``jit``: compiled by XLA, which the copy forgets."""
    constant = convert_variables_to_constants_v2(function, lower_control_flow=not jit)
    if not jit:
        return constant
    return tf.function(lambda *batch: constant(*batch), autograph=False, jit_compile=True)


def zeros_on_devices(shape):
    return framework.distributed(lambda number: tf.zeros(shape))
