"""Convert a user's JAX model of any kind to a Net."""

from functools import partial

import jax

from stele_worker.frameworks.jax.model_nets import Net, first_batch
from stele_worker.models import calling
from stele_worker.models.calling import names


def prepare(model, task):
    kind = kind_of(model)
    if kind == "nnx":
        from stele_worker.frameworks.jax import flax_nnx

        return flax_nnx.net(model)
    if kind == "linen":
        from stele_worker.frameworks.jax import flax_linen

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


def function(model):
    """Return the function whose parameters are the inputs of a model or a Net."""
    if isinstance(model, Net):
        return model.function
    return calling.in_inference(partial(model[1], None) if kind_of(model) == "pair" else model.__call__)


def layers(model):
    if kind_of(model) != "nnx":
        return []
    from stele_worker.frameworks.jax import flax_nnx

    return flax_nnx.layers(model)


def count(net):
    return sum(weight.size for weight in net.params)
