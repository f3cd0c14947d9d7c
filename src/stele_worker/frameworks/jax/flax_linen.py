"""Convert a flax.linen module to a Net. All collections except the parameters are running statistics."""

from functools import partial

import jax
from flax import linen

from stele_worker.frameworks.jax.model_nets import Net, first_batch
from stele_worker.models import calling
from stele_worker.models.task import without_dropout

UNOPTIMISED = {"xla_backend_optimization_level": 0}


def net(model, task):
    key = jax.random.PRNGKey(task.seed)

    def init(key, *batch):
        make = partial(model.init, {"params": key, "dropout": key}, **calling.flags(model.__call__, training=False))
        return calling.make_caller(make, calling.names(task._replace(target=None)))(*batch)

    # one compilation in place of one for each operation; it runs once, so optimising it would only take time
    start = (key, *first_batch(task))
    variables = dict(jax.jit(init).lower(*start).compile(compiler_options=UNOPTIMISED)(*start))
    params = variables.pop("params", {})
    trees = jax.tree.structure(params), jax.tree.structure(variables)

    def call(task, training):
        def run(params, statistics, randomness, *batch):
            held = dict(trees[1].unflatten(statistics), params=trees[0].unflatten(params))
            key, now = jax.random.split(randomness[0])
            apply = caller(model, task, held, now, training)
            if not training:
                return apply(*batch), statistics, randomness
            output, changed = apply(*batch)
            changed = dict(trees[1].unflatten(statistics), **changed)
            return output, jax.tree.leaves(changed), [key]

        return run

    return Net(params, variables, (key,), call, recorder(call), calling.in_inference(model.__call__))


def caller(model, task, variables, key, training):
    """Return apply(*batch) -> output; in training (output, changed collections)."""
    mutable = [name for name in variables if name != "params"] if training else False
    named = dict(calling.flags(model.__call__, training), rngs={"dropout": key}, mutable=mutable)
    apply = calling.make_caller(partial(model.apply, variables, **named), calling.names(task))
    if not (training and without_dropout(task)):
        return apply

    def apply_without_dropout(*batch):
        with linen.intercept_methods(keep_everything):
            return apply(*batch)

    return apply_without_dropout


def keep_everything(call, values, named, context):
    """Intercept calls of linen modules: skip dropout."""
    if context.method_name == "__call__" and isinstance(context.module, linen.Dropout):
        return values[0] if values else named["inputs"]
    if draws_masks(context.module):  # this is the copy of one call
        object.__setattr__(context.module, "dropout_rate", 0.0)
    return call(*values, **named)


def draws_masks(module):
    """Return whether a module is one of flax that draws its own masks, as attention does, or a subclass of it."""
    return any(
        cls.__module__.startswith("flax.") and "dropout_rate" in vars(cls).get("__annotations__", {})
        for cls in type(module).__mro__
    )


def recorder(call):
    """Return record(task), see ``Net``."""

    def record(task):
        names = []

        @jax.jit
        def run(*values):
            outputs = {}

            def keep(call, given, named, context):
                output = call(*given, **named)
                if context.method_name == "__call__" and context.module.path and hasattr(output, "shape"):
                    outputs.setdefault(".".join(context.module.path), output)
                return output

            with linen.intercept_methods(keep):
                call(task._replace(target=None), False)(*values)
            names[:] = outputs
            return list(outputs.values())

        def layers(*values):
            arrays = run(*values)  # its trace fills ``names``
            return dict(zip(names, arrays))

        return layers

    return record
