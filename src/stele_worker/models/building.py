"""Build a user's model with seeded weights, and check that it belongs to the expected framework."""

import copy
import os
import weakref

from stele_worker.models.errors import SpecError, user_code
from stele_worker.models.signatures import parameters, required
from stele_worker.models.specs import NAMES, framework_of, place

# by spec: a weak reference to the last model that a factory has returned
returned = {}
# a recipe file that defines all of them is complete: nothing of it is derived
STEPS = ("load", "gradients", "training_step", "inference_step", "stored")


def build_for_task(task, framework, seed):
    """Return the model of a Task, seeded by ``seed(task.seed)``. Raise SpecError if it belongs to another framework."""
    seed(task.seed)
    return build_for(task.source, framework, task.seed, task)


def build_for(source, framework, seed, task=None):
    net = build(source, seed, task)
    theirs = framework_of(net)
    if theirs != framework:
        message = "{!r} is a model of {}, but this environment runs {}."
        raise SpecError(message.format(source.spec, NAMES[theirs], NAMES.get(framework, framework)))
    return net


def build(source, seed, task=None):
    """Return the model: call the factory, or copy the imported object. Raise SpecError or UserCodeError.

    ``task`` is passed to the network of a recipe.
    """
    if source.kind == "recipe":
        return build_network(source, task)
    if framework_of(source.value) is not None:
        return copy_model(source)
    if not callable(source.value):
        message = "{!r} is {!r:.60}: neither a model nor a function or class that makes one."
        raise SpecError(message.format(source.spec, source.value))
    arguments = {name: ARGUMENTS[name](seed) for name in required_arguments(source)}
    with user_code(source.spec, source.folder):
        net = source.value(**arguments)
    if framework_of(net) is None:
        message = "{!r} returned {!r:.60}, which is not a model of PyTorch, JAX, Keras, TensorFlow or Paddle."
        raise SpecError(message.format(source.spec, net))
    return unshared(net, source)


def build_network(source, task):
    """Return the network of a recipe file. Raise SpecError if the file is named after another framework."""
    names = [each.name for each in parameters(source.value)]
    if len(required(source.value)) > 1:
        message = "{}: network({}) takes more than the task. Let it take the task, or nothing."
        raise SpecError(message.format(source.spec, ", ".join(names)))
    with user_code(source.spec, source.folder):
        net = source.value(task) if names else source.value()
    if not is_complete(source.module):
        check_framework(source, net)
    return net


def is_complete(module):
    return all(hasattr(module, name) for name in STEPS)


def check_framework(source, net):
    theirs, name = framework_of(net), os.path.basename(source.spec)[: -len(".py")]
    if theirs is None:
        message = "{}: network() returned {!r:.60}, which is not a model of {}."
        raise SpecError(message.format(place(source), net, NAMES[name]))
    if theirs != name:
        message = "{}: network() returned a model of {}, but the file is named after {}. Rename it to {}.py."
        raise SpecError(message.format(place(source), NAMES[theirs], NAMES[name], theirs))


def unshared(net, source):
    """Return a model that the factory has not returned before, because the weights of each one are changed.

    A model that stands in the user's module is copied. Raise SpecError if another one is returned twice.
    """
    if isinstance(net, (tuple, list)):  # functions, which have no weights
        return net
    if any(net is each for each in getattr(source.module, "__dict__", {}).values()):
        return copy_model(source._replace(value=net))
    before = returned.get(source.spec)
    if before is not None and before() is net:
        message = "{!r} returns the same model in each call. Return a new one: the weights of each one are changed."
        raise SpecError(message.format(source.spec))
    returned[source.spec] = weakref.ref(net)
    return net


def copy_model(source):
    try:
        return copy.deepcopy(source.value)
    except Exception as error:
        message = "{!r} is a model that cannot be copied ({}). Name a function that builds it."
        raise SpecError(message.format(source.spec, error)) from error


def required_arguments(source):
    """Return the names of the arguments that the factory requires. Raise SpecError if Stele cannot supply one."""
    names = required(source.value)
    lacking = [name for name in names if name not in ARGUMENTS]
    if lacking:
        message = "{!r} requires arguments: {}. Name a function without any that calls it."
        raise SpecError(message.format(source.spec, ", ".join(lacking)))
    return names


def rngs(seed):
    from flax import nnx

    return nnx.Rngs(seed)


ARGUMENTS = {"rngs": rngs}  # flax.nnx modules take their random numbers so
