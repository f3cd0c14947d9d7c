"""Convert a user's JAX model of any kind to a Net: lists of arrays, and functions of them."""

from functools import partial

import jax
import jax.numpy as jnp

from stele_worker.frameworks import jax as framework
from stele_worker.models import calling
from stele_worker.models.calling import names
from stele_worker.models.task import example


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


def prepare(model, task):
    kind = kind_of(model)
    if kind == "nnx":
        from stele_worker.models import flax_nnx

        return flax_nnx.net(model)
    if kind == "linen":
        from stele_worker.models import flax_linen

        return flax_linen.net(model, task)
    return pair(model, task)


def kind_of(model):
    modules = [cls.__module__ for cls in type(model).__mro__]
    if any(module.startswith("flax.nnx") for module in modules):
        return "nnx"
    return "linen" if any(module.startswith("flax") for module in modules) else "pair"


def pair(model, task):
    """Return the Net of (init, apply): init(key, *inputs) -> params, apply(params, *inputs) -> output."""
    init, apply = model
    arrays = first_batch(task)
    params = init(jax.random.PRNGKey(task.seed), *arrays)
    tree = jax.tree.structure(params)

    def call(task, training):
        def run(params, statistics, randomness, *batch):
            function = calling.make_caller(apply, [None] + names(task), calling.flags(apply, training))
            return function(tree.unflatten(params), *batch), statistics, randomness

        return run

    return Net(params, (), (), call, lambda task: lambda *values: {}, function(model))


def first_batch(task):
    """Return the inputs of one batch, for models whose parameters depend on them."""
    return [framework.put(array) for array in example(task, task.batch)[: len(task.inputs)]]


def function(model):
    """Return the function whose parameters are the inputs of a model or a Net."""
    if isinstance(model, Net):
        return model.function
    return calling.in_inference(partial(model[1], None) if kind_of(model) == "pair" else model.__call__)


def layers(model):
    if kind_of(model) != "nnx":
        return []
    from stele_worker.models import flax_nnx

    return flax_nnx.layers(model)


def count(net):
    return sum(weight.size for weight in net.params)
