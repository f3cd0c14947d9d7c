"""What an inspection does for files of the user: the Task of its task file, and checks of the target."""

from stele_worker.models import recipe_files, specs, targets
from stele_worker.models.building import is_complete
from stele_worker.models.errors import SpecError
from stele_worker.models.signatures import parameters
from stele_worker.models.task_files import TaskFile


def first_task(model, source, file):
    """Return the Task with which ``network`` is called in an inspection; None for a model without a recipe file."""
    if not model.get("recipe"):
        return None
    return recipe_files.draft(model, source) if file is None else file.task("smoke")


def task_file(model, source):
    return TaskFile(model, source) if model.get("task") else None


def with_target(task, recipe, net, put):
    """Return the Task of a task file; its target gets a name if the network takes it as an argument."""
    takes = [each for each in parameters(recipe.function(net)) if each.name in targets.NAMES]
    if takes:
        named = task._replace(target=task.target._replace(name=takes[0].name))
        if targets.returns_loss(named, recipe, net, put):
            return named
    return task


def batch(task, file, put):
    """Return the inputs of a batch of the user's samples on the device."""
    return [put(array[: task.batch]) for array in file.samples("train")[:-1]]


def check_output(task, source, file, shape):
    """Raise SpecError if the derived loss cannot compare an output of this shape with the target."""
    target = task.target
    if target.name or is_complete(source.module):
        return
    if target.kind == "float":
        if product(shape) != product(target.shape):
            message = "{}: the output has shape {}, but the target of {} has {}."
            raise SpecError(message.format(specs.place(source), shape, file.spec, target.shape))
    elif product(shape[:-1]) != product(target.shape) or shape[-1] < target.high:
        message = "{}: the output has shape {}, but the target of {} has shape {} and labels up to {}."
        raise SpecError(message.format(specs.place(source), shape, file.spec, target.shape, target.high - 1))


def product(shape):
    result = 1
    for size in shape:
        result *= size
    return result
