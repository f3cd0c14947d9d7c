"""Recipes in files of the user, ``recipes/<task>/<framework>.py``. What a file does not define is derived.

A file defines ``network(task)`` or ``network()``, and may define

LAYOUT                             the layout of its images: "NHWC", "NCHW", or None if there are no images
load(net, weights) -> net          load arrays that have the names and the layout of the task
training_step(net, task) -> step   step(*inputs, y) -> loss, a scalar; it updates the parameters
stored(net) -> {parameter: value}  the current values of the parameters
neutral(name, array) -> array      a parameter's value or gradient, a NumPy array, in the layout of the task
gradients(net, task) -> run        run(*inputs, y) -> (loss, {parameter: gradient})
inference_step(net, task) -> step  step(*inputs) -> logits or features, float32
activations(net, task) -> run      run(*inputs) -> {layer: output} in inference, images channels last

These are functions of ``stele_worker.frameworks.recipe.Recipe``, too. If a file defines every function of STEPS,
nothing is derived, and its functions receive what its ``network`` returned. A step is made directly before it is used:
in an eager framework this switches the network to training or inference.
"""

import os
from types import SimpleNamespace

import numpy

from stele_worker import frameworks
from stele_worker.models import inputs, naming, weights
from stele_worker.models.building import STEPS, build_network, is_complete
from stele_worker.models.errors import SpecError, describe_error
from stele_worker.models.specs import place
from stele_worker.models.task import Task

DERIVED = ("jax", "keras", "paddle", "tensorflow", "torch")
OPTIONAL = ("activations", "LAYOUT")


def framework(model):
    """Return the name of the framework of the host's dict: the name of the file."""
    return os.path.basename(model["recipe"])[: -len(".py")]


def recipe(model, source, task_weights=None):
    """Return the recipe of a file, its Source. Raise SpecError if it lacks functions that cannot be derived.

    ``task_weights`` are the named arrays that ``weights(seed)`` of the task returned, or None.
    """
    name = framework(model)
    if is_complete(source.module):
        return complete(source, name)
    defined = [each for each in STEPS + OPTIONAL[:1] if hasattr(source.module, each)]
    lacking = ", ".join(each for each in STEPS if each not in defined)
    if name not in DERIVED:
        message = "{}: nothing can be derived for {!r}. Define also: {}."
        raise SpecError(message.format(source.spec, name, lacking))
    if name == "jax" and defined:
        message = "{} defines {} but not {}. In JAX the parameters are outside of the network: define all or none."
        raise SpecError(message.format(source.spec, ", ".join(defined), lacking))
    return derived(source, frameworks.part(name, "model"), task_weights)


def derived(source, base, task_weights):
    """Return the derived recipe with the functions that the file defines in place of its own."""
    names = dict(vars(base), **vars(naming.make(source, base, task_weights)))
    names.update((each, getattr(source.module, each)) for each in STEPS + OPTIONAL if hasattr(source.module, each))
    load = names["load"] = loader(source, names["load"])
    if all(hasattr(source.module, each) for each in ("gradients", "training_step")):  # the file trains
        names.update(why_untrained=lambda net, number: None, loss_name=lambda net, optimizer: None)

    def network(task):
        # its weights of another arm have the names of ``stored``, so this load reads them, not the derived one
        net = base.network(task._replace(model=dict(task.model, weights=None, checkpoint=None)))
        return load(net, other_arm(task))

    return SimpleNamespace(**dict(names, network=network))


def complete(source, name):
    """Return the recipe of a file that defines everything, with the names that an inspection needs."""
    module = source.module
    names = {each: getattr(module, each) for each in STEPS + OPTIONAL if hasattr(module, each)}
    names.setdefault("LAYOUT", None)
    load = names["load"] = loader(source, module.load)
    seed = frameworks.part(name, "model").seed if name in DERIVED else numpy.random.seed

    def network(task):
        seed(task.seed)
        return load(build_network(source, task), other_arm(task))

    def count(net):
        return sum(frameworks.load(name).fetch(value).size for value in module.stored(net).values())

    names.update(network=network, count=count, seed=seed, neutral=naming.neutral(module))
    names.update(raw=module.inference_step, prepare=lambda net, task: net, function=lambda net: no_inputs)
    names.update(inputs=lambda net, source: None, layers=lambda net: [], vocabulary=lambda net: None)
    return SimpleNamespace(**names)


def no_inputs():
    """Stands for the function of a network whose inputs are not known."""


def other_arm(task):
    """Return the weights that another arm has written, or None."""
    return weights.read_files(dict(task.model, pretrained=None))


def loader(source, function):
    """Return load(net, arrays) -> net, which leaves the network as it is if there are no arrays."""

    def load(net, arrays, model=None):
        if arrays is None:
            return net
        result = function(net, arrays)
        if result is None:
            raise SpecError("{}: load(net, weights) returned None. Let it return the network.".format(source.spec))
        return result

    return load


def failure(source, items, error):
    """Return a SpecError for an exception of the network: its inputs, and the frames of the user."""
    shapes = ", ".join(map(inputs.option, items)) or "unknown"
    message = "{}: the network fails with these inputs: {}\n{}"
    return SpecError(message.format(place(source), shapes, describe_error(error, source.folder)))


def draft(model, source, seed=0, dtype="float32"):
    """Return the Task that ``network`` receives before the inputs are known."""
    none = {"batch": 1, "train": 1, "test": 1, "inputs": (), "target": None}
    return Task(name=model["spec"], model=model, source=source, seed=seed, dtype=dtype, **none)
