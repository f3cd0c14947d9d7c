"""Find what a model is trained on: a target that it takes as an argument, or labels for its output."""

from stele_worker.models import outputs
from stele_worker.models.errors import SpecError
from stele_worker.models.inputs import Input
from stele_worker.models.signatures import parameters
from stele_worker.models.task import example

NAMES = ("labels", "targets", "label", "target")  # parameters under which a model takes its target
OWN, CLASSES, SQUARED = "the model's own", "cross-entropy over the last axis", "mean squared error"


def loss(task):
    """Return the name of the loss of a Task."""
    if task.target is None or task.target.name:
        return OWN
    return CLASSES if task.target.kind == "int" else SQUARED


def complete(task, recipe, net, put):
    """Return the Task with its target, found by calling the model. Raise SpecError if the output allows none."""
    takes = [each for each in parameters(recipe.function(net)) if each.name in NAMES]
    passed = [each for each in task.inputs if takes and each.name == takes[0].name]
    if passed and takes[0].default is not takes[0].empty:  # the inputs hold a target that inference does not need
        without = task._replace(inputs=tuple(each for each in task.inputs if each not in passed))
        if returns_loss(without._replace(target=passed[0]), recipe, net, put):
            return without._replace(target=passed[0])
    output = recipe.raw(net, task)(*arrays(task, put))
    if type(output) not in (tuple, list) and outputs.loss(output) is not None:
        return task
    shape = shape_of(outputs.main(output), task)
    if outputs.is_complex(outputs.main(output)):
        return task._replace(target=labels(shape + (2,), task, "float"))
    for candidate in candidates(takes[0].name, shape, task) if takes and not passed else ():
        if returns_loss(task._replace(target=candidate), recipe, net, put):
            return task._replace(target=candidate)
    kind = recipe.target_kind(net) if hasattr(recipe, "target_kind") else None
    return task._replace(target=labels(shape, task, kind))


def returns_loss(task, recipe, net, put):
    """Return whether the model returns a loss when it is passed the Task's target."""
    try:
        return outputs.loss(recipe.raw(net, task)(*arrays(task, put))) is not None
    except Exception:  # of a target in another shape, for example
        return False


def arrays(task, put):
    return [put(array) for array in example(task, task.batch)]


def shape_of(output, task):
    if output is None:
        raise SpecError("{} returns no array that a loss could be computed of.".format(task.name))
    return tuple(int(size) for size in output.shape)


def candidates(name, shape, task):
    """Yield targets that a model may take: a class for each position, input token or sample; floats."""
    tokens = [each.shape for each in task.inputs if each.kind == "int"]
    for size in [shape[:-1]] + tokens[:1] + [shape[:1]]:
        if size and size[0] == task.batch and shape[-1] > 1:
            yield Input(name, "int", size, shape[-1])
    if shape and shape[0] == task.batch:
        yield Input(name, "float", shape)


def labels(shape, task, kind=None):
    """Return a target of classes for the last axis of the output, or of floats if that axis has no classes.

    ``kind`` is that of the loss of the model, if it has one: "int" for classes, "float" for as many floats.
    """
    if not shape:
        raise SpecError("{} returns a single number for a whole batch, and no loss.".format(task.name))
    classes = len(shape) > 1 and shape[-1] > 1 and kind != "float"
    size = shape[:-1] if classes else shape
    if size[0] != task.batch:  # the model has put axes together
        count = 1
        for each in size:
            count *= each
        if count % task.batch:
            message = "{} returns shape {}, which has no axis for the batch of {}. Let it return its own loss."
            raise SpecError(message.format(task.name, shape, task.batch))
        size = (task.batch, count // task.batch)
    return Input(None, "int", size, shape[-1]) if classes else Input(None, "float", size)
