"""Convert a flax.nnx module to a Net: it is split into arrays once, and merged only while JAX traces a step."""

from functools import wraps

import jax
from flax import nnx

from stele_worker.frameworks.jax.model_nets import Net
from stele_worker.models import calling
from stele_worker.models.task import without_dropout

GROUPS = nnx.Param, nnx.RngState, ...


def net(model):
    graph, params, randomness, statistics = nnx.split(model, *GROUPS)
    trees = [jax.tree.structure(state) for state in (params, randomness, statistics)]

    def merge(params, statistics, randomness):
        states = [tree.unflatten(values) for tree, values in zip(trees, (params, randomness, statistics))]
        return nnx.merge(graph, *states)

    def call(task, training):
        def run(params, statistics, randomness, *batch):
            module = merge(params, statistics, randomness)
            set_mode(module, training, without_dropout(task))
            flags = calling.flags(module.__call__, training)
            output = calling.make_caller(module, calling.names(task), flags)(*batch)
            _, _, randomness, statistics = nnx.split(module, *GROUPS)
            return output, jax.tree.leaves(statistics), jax.tree.leaves(randomness)

        return run

    return Net(params, statistics, randomness, call, recorder(merge), calling.in_inference(model.__call__))


def set_mode(module, training, quiet):
    module.train() if training else module.eval()
    if quiet:  # batch statistics stay those of training
        module.set_attributes(deterministic=True, raise_if_not_found=False)


def recorder(merge):
    """Return record(task), see ``Net``. nnx has no hooks: the layers' classes are wrapped while JAX traces a call."""

    def record(task):
        names = []

        @jax.jit
        def run(params, statistics, randomness, *batch):
            module = merge(params, statistics, randomness)
            set_mode(module, False, False)
            named, flags = calling.names(task._replace(target=None)), calling.flags(module.__call__, False)
            outputs = traced(module, calling.make_caller(module, named, flags), batch)
            names[:] = outputs
            return list(outputs.values())

        def layers(*values):
            arrays = run(*values)  # its trace fills ``names``
            return dict(zip(names, arrays))

        return layers

    return record


def traced(module, call, batch):
    """Return {layer: output} of the layers without children."""
    paths = {id(layer): ".".join(map(str, path)) for path, layer in nnx.iter_modules(module) if is_leaf(layer)}
    classes = {type(layer) for _, layer in nnx.iter_modules(module) if id(layer) in paths}
    originals, outputs = {cls: cls.__call__ for cls in classes if "__call__" in vars(cls)}, {}

    def wrap(original):
        @wraps(original)
        def run(layer, *values, **named):
            output = original(layer, *values, **named)
            if hasattr(output, "shape") and id(layer) in paths:
                outputs.setdefault(paths[id(layer)], output)
            return output

        return run

    for cls, original in originals.items():
        cls.__call__ = wrap(original)
    try:
        call(*batch)
    finally:
        for cls, original in originals.items():
            cls.__call__ = original
    return outputs


def is_leaf(layer):
    return len(list(nnx.iter_modules(layer))) == 1


def layers(model):
    """Return all modules inside a module, in order of definition."""
    result = []
    for value in children(model):
        if isinstance(value, nnx.Module):
            result.append(value)
        if isinstance(value, (nnx.Module, list, tuple, dict)):
            result += layers(value)
    return result


def children(value):
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, (list, tuple)) else list(vars(value).values())
