"""What a user's JAX model of any kind becomes: lists of arrays, and functions of them."""

import jax
import jax.numpy as jnp

from stele_worker import frameworks
from stele_worker.models.task import example

framework = frameworks.load("jax")


class Net:
    """Parameters, running statistics and random state as lists of arrays, which jit flattens faster than trees.

    call(task, training)    a function (params, statistics, randomness, *batch) -> (output, statistics, randomness)
    record(task)            a function (params, statistics, randomness, *batch) -> {layer: output}, of inference
    function                the function whose parameters are the model's inputs
    """

    def __init__(self, params, statistics, randomness, call, record, function):
        self.names, self.params = flatten(params)
        self.statistics_names, self.statistics = flatten(statistics)
        _, self.randomness = flatten(randomness)
        self.call, self.record, self.function = call, record, function


def flatten(tree):
    """Return (names, arrays): the paths and copies of a tree's leaves. Copies, because the step donates them."""
    pairs = jax.tree_util.tree_flatten_with_path(tree)[0]
    return [name_of(path) for path, _ in pairs], [jnp.array(leaf, copy=True) for _, leaf in pairs]


def name_of(path):
    parts = [str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", key)))) for key in path]
    return ".".join(parts[:-1] if parts[-1] == "value" and len(parts) > 1 else parts)  # nnx.Variable.value


def first_batch(task):
    """Return the inputs of one batch, for models whose parameters depend on them."""
    return [framework.put(array) for array in example(task, task.batch)[: len(task.inputs)]]
