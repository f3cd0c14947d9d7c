"""What the recipes of JAX have in common: steps, gradients and optimisers."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy

from stele_worker import frameworks
from stele_worker.frameworks.recipe import Recipe
from stele_worker.ranks import ranks

framework = frameworks.load("jax")


class Training:
    """What a step of training has besides the weights: a random key, and the new running statistics.

    ``key`` is None if the Task has no dropout. ``running`` receives the new statistics: {parameter: array}.
    """

    def __init__(self, key):
        self.key, self.running = key, {}


def keys(training, count):
    """Return an iterator of ``count`` random keys for dropout: None in inference, where ``training`` is None."""
    key = None if training is None else training.key
    return iter([None] * count if key is None else jax.random.split(key, count))


class JaxRecipe(Recipe):
    """A network is {parameter: array}; ``forward`` computes the layers from it.

    forward(net, task, *inputs, training=None): ``training`` is a ``Training``, or None in inference.
    """

    def network(self, task):
        return {}

    def is_trained(self, name):
        """Return whether the optimiser updates an array of the network: all but running statistics."""
        return ".running_" not in name

    def assign(self, net, arrays):
        net.update((name, jnp.array(array)) for name, array in arrays.items())
        return net

    def stored(self, net):
        return net

    def loss_function(self, task):
        """Return compute(weights, state, *inputs, y) -> (loss, new state), with the parts of ``divided``."""

        def compute(weights, state, *arrays):
            (others, key), (*inputs, y) = state, arrays
            key, masks = (None, None) if key is None else jax.random.split(key)
            training = Training(masks)
            output = self.forward({**weights, **others}, task, *inputs, training=training)
            return self.loss(task, output, y), ({**others, **training.running}, key)

        return compute

    def divided(self, net, task):
        """Return (weights, (other arrays, random key)): what is trained, and the rest of the state."""
        parts = {}, {}
        for name, array in net.items():
            parts[0 if self.is_trained(name) else 1][name] = array
        # rbg compiles and draws faster than threefry
        key = jax.random.key(task.seed, impl="rbg") if any(task.dropout) else None
        return parts[0], (parts[1], key)

    def after_step(self, task, weights, others):
        """Return the other arrays of the next step, from the updated weights."""
        return others

    def training_step(self, net, task):
        def keep(weights, state):
            net.update(weights)
            net.update(state[0])

        def finish(weights, state):
            return self.after_step(task, weights, state[0]), state[1]

        parts, optimiser = self.divided(net, task), self.optimiser(net, task)
        return make_training_step(self.loss_function(task), parts, optimiser, keep, finish)

    def gradients(self, net, task):
        compute = framework.compiled(jax.value_and_grad(self.loss_function(task), has_aux=True))

        def run(*arrays):
            (value, _), grads = compute(*framework.replicated(self.divided(net, task)), *arrays)
            return value, grads

        return run

    def inference_step(self, net, task):
        if framework.mode == "constants":
            return framework.compiled(lambda *inputs: self.predict(net, task, *inputs))
        run = framework.compiled(lambda net, *inputs: self.predict(net, task, *inputs))
        return lambda *inputs: run(net, *inputs)

    def activations(self, net, task):
        return lambda *inputs: self.recorded(lambda *inputs: self.forward(net, task, *inputs), *inputs) or None


def dropout(x, rate, key):
    """Drop numbers out, and scale the others up; ``key`` is None in inference."""
    if key is None or rate == 0:
        return x
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


class Optimiser(NamedTuple):
    """start(weights) -> slots; update(slots, weights, gradients) -> (weights, slots)."""

    start: Any
    update: Any


def sgd(task):
    """Return SGD with the learning rate outside the velocity."""

    def update(velocity, weights, grads):
        velocity = jax.tree.map(lambda v, g: task.momentum * v + g, velocity, grads)
        return jax.tree.map(lambda w, v: w - task.learning_rate * v, weights, velocity), velocity

    return Optimiser(lambda weights: jax.tree.map(jnp.zeros_like, weights), update)


def adam(task):
    """Return Adam with epsilon outside the root and both moments bias-corrected."""

    def start(weights):
        return jax.tree.map(jnp.zeros_like, weights), jax.tree.map(jnp.zeros_like, weights), jnp.zeros(())

    def update(slots, weights, grads):
        mean, square, count = slots
        count = count + 1
        mean = jax.tree.map(lambda m, g: task.beta1 * m + (1 - task.beta1) * g, mean, grads)
        square = jax.tree.map(lambda s, g: task.beta2 * s + (1 - task.beta2) * g * g, square, grads)

        def update_weight(weight, m, s):
            m = m / (1 - task.beta1**count)
            s = s / (1 - task.beta2**count)
            return weight - task.learning_rate * m / (jnp.sqrt(s) + task.epsilon)

        return jax.tree.map(update_weight, weights, mean, square), (mean, square, count)

    return Optimiser(start, update)


def make_training_step(loss, parts, optimiser, keep, finish):
    """Return step(*inputs, y) -> value. loss(weights, state, *inputs, y) returns (value, new state).

    ``parts`` are the first weights and state; ``keep(weights, state)`` receives them after each step. finish(weights,
    state) returns the state of the next step, from the updated weights.
    """
    weights, state = framework.replicated(parts)
    slots = framework.replicated(optimiser.start(weights))

    def compute(weights, slots, state, *arrays):
        (value, state), grads = jax.value_and_grad(loss, has_aux=True)(weights, state, *arrays)
        weights, slots = optimiser.update(slots, weights, grads)
        return weights, slots, finish(weights, state), value

    update = compiled_update(compute, 3, weights)

    def step(*arrays):
        nonlocal weights, slots, state
        weights, slots, state, value = update(weights, slots, state, *arrays)
        framework.wait_also_for(weights, slots, state)
        keep(weights, state)
        return value

    def restore(saved):
        nonlocal weights, slots, state
        weights, slots, state = from_arrays((weights, slots, state), saved)
        keep(weights, state)

    step.state, step.restore = lambda: to_arrays((weights, slots, state)), restore
    add_communication(step, update)
    return step


def compiled_update(compute, kept, weights):
    """Return a compiled ``compute``. Its first ``kept`` arguments are on every device, and their buffers are donated.

    On several devices the other arguments are divided, and it has a ``communication``, which can be left out.
    """
    donated = tuple(range(kept))
    update = framework.compiled(lambda *arrays: kept_replicated(compute(*arrays)), donate=donated)
    if ranks.count == 1 or not hasattr(jax, "shard_map"):
        return update
    communication = Communication(weights)
    apart = jax.jit(computed_apart(compute, kept), donate_argnums=donated)

    def either(*arrays):
        return (update if communication.exchanges else apart)(*arrays)

    either.communication = lambda: communication
    return either


def computed_apart(compute, kept):
    """Return ``compute`` as each device does it with its part of the batch, without the sums over the devices."""
    whole, part = jax.sharding.PartitionSpec(), jax.sharding.PartitionSpec("batch")

    def run(*arrays):
        given = (whole,) * kept + (part,) * (len(arrays) - kept)
        mesh = framework.mesh()
        return jax.shard_map(compute, mesh=mesh, in_specs=given, out_specs=whole, check_vma=False)(*arrays)

    return run


def add_communication(step, update):
    """Let ``step`` leave out the communication of its ``update``, if it has any."""
    if hasattr(update, "communication"):
        step.communication = update.communication


class Communication:
    """The sum of the gradients over the devices. A step can leave it out, and it can be done alone.

    ``exchanges`` says whether the next step has it.
    """

    def __init__(self, weights):
        self.exchanges, self.zeros = True, None
        self.shapes = jax.tree.map(lambda weight: jax.ShapeDtypeStruct(weight.shape, weight.dtype), weights)
        self.add = jax.jit(computed_apart(lambda grads: jax.lax.psum(grads, "batch"), kept=1))

    def alone(self):
        """Exchange as many numbers as a step does."""
        if self.zeros is None:
            self.zeros = framework.replicated(jax.tree.map(lambda one: jnp.zeros(one.shape, one.dtype), self.shapes))
        return self.add(self.zeros)

    def meet(self):
        """Return at once: one process begins for all devices."""


def is_key(leaf):
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def to_arrays(tree):
    """Return the leaves of a tree as NumPy arrays, named by their position."""
    leaves = [jax.random.key_data(leaf) if is_key(leaf) else leaf for leaf in jax.tree.leaves(tree)]
    return {str(number): numpy.asarray(leaf) for number, leaf in enumerate(leaves)}


def from_arrays(tree, arrays):
    """Return a tree like ``tree`` with the leaves that ``to_arrays`` named."""
    leaves, structure = jax.tree.flatten(tree)
    saved = [jnp.array(arrays[str(number)]) for number in range(len(leaves))]
    pairs = zip(leaves, saved)
    return structure.unflatten(
        [jax.random.wrap_key_data(new, impl=jax.random.key_impl(old)) if is_key(old) else new for old, new in pairs]
    )


def on_gpu():
    return jax.default_backend() == "gpu"


def kept_replicated(tree):
    """Make a compiled function return arrays that every device has; else its second call would compile again."""
    return tree if ranks.count == 1 else jax.lax.with_sharding_constraint(tree, framework.sharding())
