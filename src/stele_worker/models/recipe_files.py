"""Recipes in files of the user, ``recipes/<task>/<framework>.py``. What a file does not define is derived.

A file defines ``network(task)`` or ``network()``. It may define any other name of ``stele_worker.recipes``. If it
defines every function of STEPS, nothing is derived, and its functions receive what its ``network`` returned.
"""

import os
import sys
from types import SimpleNamespace

import numpy

from stele_worker import frameworks
from stele_worker.models import building, importing, inputs, naming, weights
from stele_worker.models.errors import SpecError, describe_error, user_code
from stele_worker.models.specs import Source, framework_of, nearest, place
from stele_worker.models.task import Task

DERIVED = ("jax", "keras", "paddle", "tensorflow", "torch")
STEPS = ("load", "gradients", "training_step", "inference_step", "stored")
OPTIONAL = ("activations", "LAYOUT")


def framework(model):
    """Return the name of the framework of the host's dict: the name of the file."""
    return os.path.basename(model["recipe"])[: -len(".py")]


def find(model):
    """Import the file and return its Source. Raise SpecError or UserCodeError."""
    module = import_file(model["recipe"], "recipe", model["spec"], model["folder"])
    if not callable(getattr(module, "network", None)):
        message = "{} does not define the function network(task).{}"
        raise SpecError(message.format(model["spec"], nearest("network", vars(module))))
    return Source(model["spec"], model["folder"], "recipe", module.network, module)


def import_file(path, kind, text, folder):
    """Return the module of a file, under a name that is not a framework's. Its project is on the import path."""
    if not os.path.isfile(path):
        raise SpecError("{}: there is no file {}.".format(text, path))
    levels = {"recipe": 3, "task": 2}[kind]  # recipes/<task>/torch.py and tasks/<task>.py
    project = path
    for _ in range(levels):
        project = os.path.dirname(project)
    importing.add_to_path(folder)
    importing.add_to_path(project)
    parts = os.path.relpath(path, project)[: -len(".py")].split(os.sep)
    name = "_".join(["stele_user"] + parts)
    if name in sys.modules and sys.modules[name].__file__ != path:
        del sys.modules[name]
    return importing.execute(name, path, folder, text)


def is_complete(module):
    return all(hasattr(module, name) for name in STEPS)


def recipe(model, task_weights=None):
    """Return the recipe of a file. Raise SpecError if it lacks functions that cannot be derived.

    ``task_weights`` are the named arrays that ``weights(seed)`` of the task returned, or None.
    """
    source, name = find(model), framework(model)
    if is_complete(source.module):
        return complete(source, name)
    defined = [each for each in STEPS + OPTIONAL[:1] if hasattr(source.module, each)]
    lacking = ", ".join(each for each in STEPS if each not in defined)
    if name not in DERIVED:
        message = "{}: nothing can be derived for {!r}. Define also: {}."
        raise SpecError(message.format(source.spec, name, lacking))
    if name == "jax" and defined:
        message = (
            "{} defines {} but not {}. In JAX the parameters are outside of the network: define all or none."
        )
        raise SpecError(message.format(source.spec, ", ".join(defined), lacking))
    return derived(source, derived_module(name), task_weights)


def derived_module(name):
    from stele_worker.models import inspection

    return inspection.recipe_of(name)


def derived(source, base, task_weights):
    """Return the derived recipe with the functions that the file defines in place of its own."""
    names = dict(vars(base), **vars(naming.make(source, base, task_weights)))
    names.update(
        (each, getattr(source.module, each)) for each in STEPS + OPTIONAL if hasattr(source.module, each)
    )
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
    seed = derived_module(name).seed if name in DERIVED else numpy.random.seed

    def network(task):
        seed(task.seed)
        return load(build(source, task), other_arm(task))

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
            raise SpecError(
                "{}: load(net, weights) returned None. Let it return the network.".format(source.spec)
            )
        return result

    return load


def build(source, task):
    """Return what network(task) or network() of the file returns, of the framework that the file is named after."""
    names = [each.name for each in building.parameters(source.value)]
    if len(building.required(source.value)) > 1:
        message = "{}: network({}) takes more than the task. Let it take the task, or nothing."
        raise SpecError(message.format(source.spec, ", ".join(names)))
    with user_code(source.spec, source.folder):
        net = source.value(task) if names else source.value()
    if not is_complete(source.module):
        check_framework(source, net)
    return net


def check_framework(source, net):
    theirs, name = framework_of(net), os.path.basename(source.spec)[: -len(".py")]
    if theirs is None:
        message = "{}: network() returned {!r:.60}, which is not a model of {}."
        raise SpecError(message.format(place(source), net, building.NAMES[name]))
    if theirs != name:
        message = "{}: network() returned a model of {}, but the file is named after {}. Rename it to {}.py."
        raise SpecError(message.format(place(source), building.NAMES[theirs], building.NAMES[name], theirs))


def failure(source, given, error):
    """Return a SpecError for an exception of the network: its inputs, and the frames of the user."""
    shapes = ", ".join(map(inputs.option, given)) or "unknown"
    message = "{}: the network fails with these inputs: {}\n{}"
    return SpecError(message.format(place(source), shapes, describe_error(error, source.folder)))


def draft(model, seed=0, dtype="float32"):
    """Return the Task that ``network`` receives before the inputs are known."""
    none = {"batch": 1, "train": 1, "test": 1, "inputs": (), "target": None}
    return Task(name=model["spec"], model=model, seed=seed, dtype=dtype, **none)
