"""Build a user's model with seeded weights, and check that it belongs to the expected framework."""

import copy
import inspect
import weakref

from stele_worker.models import specs
from stele_worker.models.errors import SpecError, user_code
from stele_worker.models.specs import framework_of

returned = {}  # by spec: a weak reference to the last model that a factory has returned
NAMES = {"torch": "PyTorch", "jax": "JAX", "keras": "Keras", "tensorflow": "TensorFlow", "paddle": "Paddle"}
NAMES.update(numpy="NumPy", chainer="Chainer", mxnet_gluon="MXNet")  # of complete recipes


def build_for_task(task, framework, seed):
    """Return the model of a Task, seeded by ``seed(task.seed)``. Raise SpecError if it belongs to another framework."""
    seed(task.seed)  # a model that stands in a module gets its weights at the import
    source = specs.find(task.model)
    seed(task.seed)
    return build_for(source, framework, task.seed, task)


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
        from stele_worker.models import recipe_files

        return recipe_files.build(source, task)
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
        message = (
            "{!r} returns the same model in each call. Return a new one: the weights of each one are changed."
        )
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


def required(function):
    """Return the names of the parameters without defaults; [] if Python cannot read the signature."""
    return [
        each.name for each in parameters(function) if each.default is each.empty and each.kind not in (2, 4)
    ]


def parameters(function):
    """Return the parameters of a function, or of the constructor of a class."""
    skipped = 1 if isinstance(function, type) else 0
    try:
        return list(inspect.signature(function.__init__ if skipped else function).parameters.values())[
            skipped:
        ]
    except (TypeError, ValueError):  # written in C
        return []


def rngs(seed):
    from flax import nnx

    return nnx.Rngs(seed)


ARGUMENTS = {"rngs": rngs}  # flax.nnx modules take their random numbers so
