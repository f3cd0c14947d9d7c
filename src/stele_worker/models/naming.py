"""Names and layouts of parameters, for a derived recipe of a file that defines NAMES or ``neutral``.

NAMES                  {name in the framework: name in the task}; a name that is missing stays as it is
neutral(name, array)   an array of the framework in the layout of the task; ``name`` is the task's

``neutral`` may only reorder the numbers of an array, such as ``array.T``. So its inverse is known: it is applied to
the positions of the numbers.
"""

from types import SimpleNamespace

import numpy

from stele_worker import layouts
from stele_worker.models.errors import SpecError, user_code
from stele_worker.models.specs import place


def make(source, base, task_weights):
    """Return load, stored, gradients and neutral with the task's names and layouts."""
    names, convert = getattr(source.module, "NAMES", {}), neutral(source.module)

    def rename(values):
        return {names.get(name, name): value for name, value in values.items()}

    if not names and task_weights is None and not hasattr(source.module, "neutral"):
        return SimpleNamespace(load=base.load, gradients=base.gradients, stored=base.stored, neutral=convert)

    def load(net, arrays):
        stored = base.stored(net)
        check_names(source, list(rename(stored)), task_weights)
        theirs = {}
        for name, value in stored.items():
            ours = names.get(name, name)
            if ours in arrays:
                theirs[name] = inverse(source, convert, ours, tuple(value.shape), arrays[ours])
        return base.load(net, theirs)

    def gradients(net, task):
        run = base.gradients(net, task)

        def differentiate(*batch):
            loss, values = run(*batch)
            return loss, rename(values)

        return differentiate

    def activations(net, task):
        run, layers = base.activations(net, task), {layer(name): layer(names[name]) for name in names}
        return lambda *batch: {layers.get(name, name): value for name, value in run(*batch).items()}

    functions = {"load": load, "gradients": gradients, "neutral": convert}
    if hasattr(base, "activations"):
        functions["activations"] = activations
    return SimpleNamespace(stored=lambda net: rename(base.stored(net)), **functions)


def layer(name):
    """Return the layer of a parameter: ``hidden`` of ``hidden.weight``."""
    return name.rpartition(".")[0]


def neutral(module):
    """Return neutral(name, array) -> a new array: ``fetch`` may share memory with a parameter."""
    function = getattr(module, "neutral", None)
    return lambda name, array: numpy.array(array if function is None else function(name, array))


def check_names(source, names, task_weights):
    """Raise SpecError if the task's weights have a name that no parameter has."""
    unknown = [name for name in task_weights or () if name not in names]
    if unknown:
        message = "{}: the task has weights {!r}, but the parameters are {}. Add {}"
        free = [name for name in names if name not in task_weights]
        pairs = ", ".join("{!r}: {!r}".format(*pair) for pair in zip(free, unknown))
        advice = "NAMES = {{{}}} with the right pairs.".format(pairs) if free else "the missing parameters."
        raise SpecError(message.format(source.spec, unknown[0], ", ".join(names), advice))


def inverse(source, convert, name, shape, array):
    """Return the array of shape ``shape`` whose ``neutral`` is ``array``. Raise SpecError if there is none."""
    positions = numpy.arange(int(numpy.prod(shape))).reshape(shape)
    with user_code(source.spec, source.folder):
        order = convert(name, positions)
    if not numpy.array_equal(numpy.sort(order, axis=None), positions.reshape(-1)):
        message = "{}: neutral({!r}, array) does more than reorder numbers. Define load, stored and gradients, too."
        raise SpecError(message.format(source.spec, name))
    if order.shape != array.shape:
        message = "{}: {!r} has shape {} in the task, but {} in the network. {}"
        same = sorted(order.shape) == sorted(array.shape)
        advice = "Define neutral(name, array)." if same else "Let both have the same size."
        raise SpecError(message.format(place(source), name, array.shape, order.shape, advice))
    return layouts.restore(order, array, shape)
