"""Recipes: one Task in one framework, about a page each, in ``recipes/<task>/<framework>.py``.

Every recipe has the same names in the same order:

LAYOUT                             the layout of its images: "NHWC", "NCHW", or None if there are no images
network(task)                      return the network; its parameters are not set yet
load(net, weights) -> net          load neutral named arrays (see the Task) in the framework's layout
training_step(net, task) -> step   step(*inputs, y) -> loss, a scalar; updates the parameters
stored(net) -> {parameter: value}  the current values of the parameters
neutral(name, array) -> array      convert a parameter's value or gradient, a numpy array, to the Task's layout

and, if the framework gives access to layers,

activations(net, task) -> run      run(*inputs) -> {layer: output} in inference, images channels last

Two more are the same in all recipes of a framework. A recipe has its own, or the framework's module makes them from
what its recipes have in common, such as ``loss`` and ``predict``:

gradients(net, task) -> run        run(*inputs, y) -> (loss, {parameter: gradient})
inference_step(net, task) -> step  step(*inputs) -> logits or features, float32
evaluation_step(net, task) -> step the same for a network whose training goes on; default: inference_step

Create a step directly before it is used: in an eager framework this switches the network to training or inference.

The framework's module draws and applies the augmentation, so that no recipe contains it.

A training step may have two attributes, with which a training that was killed continues:

step.state() -> {name: array}      everything that the next steps depend on, as NumPy arrays
step.restore(state)                continue from such a state
"""

import importlib
from functools import partial

from stele_worker import frameworks


def load(task, framework):
    """Return the recipe of a Task, with what its framework's module makes of it."""
    recipe = importlib.import_module("{}.{}.{}".format(__name__, task.replace("-", "_"), framework))
    support = frameworks.load(framework)
    for name in ("gradients", "inference_step", "evaluation_step"):
        if not hasattr(recipe, name) and hasattr(support, name):
            setattr(recipe, name, partial(getattr(support, name), recipe))
    return recipe
