"""What a worker measures: a Task together with its recipe, its samples and its weights.

A TaskSubject is a Task of ``stele_suite.tasks`` with a recipe of ``stele_suite.recipes``. A ModelSubject is a model
of the user, from which a recipe is derived (``stele_worker.models``). A FileSubject is a recipe with a task file of the
user. All have the same names:

task, recipe            see ``stele_suite.tasks`` and ``stele_worker.frameworks.recipe``
samples(part, data)     arrays of "train" or "test": the inputs in order, then the target
rows(part)              for each step the rows of these arrays: int64 of shape (steps, batch). "infer" has those of
                        "test", perhaps several times, to time them
weights(path, samples)  named arrays to start from; None if the network initialises itself. ``samples`` are those of
                        training, from which a Task may compute some of its weights
epochs()                the rows of each training step, a list of int64 (steps, batch); only of a TaskSubject
on_host()               whether NumPy augments the samples; only of a TaskSubject
table(framework)        table(epoch), of ``tasks.augmentation``; None if a Task does not augment; only of a TaskSubject
initial(framework, weights)  the weights to start from: ``weights``, or in the open division those that the framework
                        draws; only of a TaskSubject
augmented(samples, epoch)  samples of training, augmented in NumPy for an epoch; only of a TaskSubject
correct(output, target) the number of right answers in a batch; None if labels mean nothing
score                   score(outputs, targets) of all samples, in place of right answers; None if the Task has none
loaded(weights)         the arrays that the network's parameters must equal; ``weights`` are those loaded or read back
parity_batch()          the arrays of the small fixed batch that parity compares, in the Task's layout
arrange(arrays)         such arrays in the layout of the recipe
parity_steps            the number of optimizer steps that parity compares
without_dropout()       the same subject with dropout off
"""

from functools import partial
from itertools import count

import numpy

from stele_suite import tasks
from stele_suite.tasks import augmentation
from stele_worker import recipes


def find(framework, name, scale, seed, dtype, form=None, model=None, batch=None, division="closed", **changes):
    """Return the subject that a request names. Raises SpecError or UserCodeError for a model that cannot be used.

    ``batch`` is the number of samples of a step; None for that of the Task. ``changes`` are of fields of the Task.
    ``division`` is "open" if the framework draws the random numbers.
    """
    if model is not None:
        from stele_worker.models import inspection
        from stele_worker.models.task import with_batch

        if model.get("task"):
            task, recipe, file = inspection.resolve_file(model, scale, seed, dtype)
            return FileSubject(with_batch(task, batch), recipe, file, scale)
        task, recipe = inspection.resolve(model, framework.name, scale, seed, dtype)
        return ModelSubject(with_batch(task, batch), recipe)
    changes.update(seed=seed, dtype=dtype)
    if batch is not None:
        changes["batch"] = batch
    if form is not None:
        changes["form"] = form
    if division == "open" and tasks.why_closed(name, framework.name):
        raise ValueError(tasks.why_closed(name, framework.name))
    task, recipe = tasks.make(name, scale, **changes), recipes.load(name, framework.name)
    return TaskSubject(task, recipe, division)


class TaskSubject:
    """A Task with data or noise as its samples, and seeded weights in NumPy, the same for every framework.

    In the open ``division``, the framework draws the weights, crops, flips and squares.
    """

    def __init__(self, task, recipe, division="closed"):
        self.task, self.recipe, self.module = task, recipe, tasks.load(task.name)
        self.opened, self.score = division == "open", getattr(self.module, "score", None)
        self.parity_steps = self.module.PARITY_STEPS

    def samples(self, part, data):
        size = getattr(self.task, part)
        if hasattr(self.module, "samples"):
            return self.arrange(self.module.samples(self.task, part))
        if self.task.data is None:
            return self.arrange(self.module.example(self.task, size))
        x = numpy.load(data[part + "_x"], mmap_mode="r")
        y = numpy.load(data[part + "_y"], mmap_mode="r")
        rows = tasks.subset(size, len(x))
        return self.arrange((self.module.inputs(x[rows]), numpy.ascontiguousarray(y[rows], numpy.int32)))

    def rows(self, part):
        if part == "train":
            return [rows for epoch in self.epochs() for rows in epoch]
        batch = getattr(self.task, "test_batch", self.task.batch) if part == "test" else self.task.batch
        batch = min(batch, self.task.test)  # of many devices it is large
        count = self.task.test // batch
        return numpy.arange(count * batch).reshape(count, batch)

    def epochs(self):
        return [tasks.batch_order(self.task, epoch) for epoch in range(self.task.epochs)]

    def on_host(self):
        return not self.opened and hasattr(self.module, "on_host") and self.module.on_host(self.task)

    def table(self, framework):
        if self.opened:
            pixels = framework.put(numpy.arange(augmentation.PIXELS, dtype=numpy.int32))
            plan = self.module.augmentation_plan(self.task)
            return partial(augmentation.drawn, plan, framework.draw_integers, pixels, self.task.seed)
        table = getattr(self.module, "augmentation_table", None)
        if table is None or self.on_host():
            return None
        # made here, as the order of the samples: in the closed division they are given, so no clock runs
        return [table(self.task, epoch) for epoch in range(self.task.epochs)].__getitem__

    def initial(self, framework, weights):
        if not self.opened:
            return weights
        seeds = count(1024 * self.task.seed)
        return self.module.redrawn(self.task, weights, lambda shape: framework.draw_weight(shape, next(seeds)))

    def augmented(self, samples, epoch):
        arrays = tuple(channels_last(array, self.recipe) for array in samples)
        return self.arrange(self.module.augment(self.task, arrays, epoch))

    def weights(self, path=None, samples=None):
        if path is None:
            arrays = tasks.weights(self.task)
            if samples is None or not hasattr(self.module, "fitted"):
                return arrays
            return self.module.fitted(self.task, arrays, channels_last(samples[0], self.recipe))
        with numpy.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}

    def loaded(self, weights):
        return weights

    def correct(self, output, target):
        return None if self.task.data is None else tasks.correct(self.task.name, output, target)

    def parity_batch(self):
        return self.module.example(self.task, self.task.batch)

    def arrange(self, arrays):
        """Return images (n, height, width, channel) as the recipe takes them, and other arrays as they are."""
        return tuple(channels_first(array, self.recipe) for array in arrays)

    def without_dropout(self):
        return TaskSubject(tasks.without_dropout(self.task), self.recipe)


class ModelSubject:
    """A model of the user with seeded random samples. It initialises itself, or takes the weights of another arm."""

    parity_steps, score = 20, None

    def __init__(self, task, recipe):
        self.task, self.recipe = task, recipe

    def samples(self, part, data):
        from stele_worker.models import task

        return task.example(self.task, getattr(self.task, part))

    def rows(self, part):
        from stele_worker.models import task

        return task.rows(self.task, "test" if part == "infer" else part)

    def weights(self, path=None, samples=None):
        return None

    def loaded(self, weights):
        """Return the weights that another arm saved, as far as this network has them."""
        from stele_worker.models.weights import of_arm

        path = self.task.model.get("weights")
        return weights if path is None else of_arm(path, weights)

    def correct(self, output, target):
        return None

    def parity_batch(self):
        from stele_worker.models import task

        return task.example(self.task._replace(values=self.values()), self.task.batch)

    def values(self):
        """Return the values of example_inputs(): those that another arm saved, or those of this arm."""
        from stele_worker.models.weights import read_arrays

        path = self.task.model.get("values")
        return self.task.values if path is None or not self.task.values else read_arrays(path)

    def input_errors(self):
        """Return by how much this arm's own values of each input differ from those of another arm: see ``compare``."""
        from stele_worker.models.inputs import compare

        values, other = self.task.values or {}, self.values() or {}
        return {name: compare(array, other.get(name))[1] for name, array in values.items()}

    def arrange(self, arrays):
        return arrays

    def without_dropout(self):
        return ModelSubject(tasks.without_dropout(self.task), self.recipe)


class FileSubject:
    """A Task in a file of the user, with the user's samples, and a recipe in a file of the user.

    Its weights are those of the task file, or the network initialises itself as that of a ModelSubject does.
    """

    parity_steps, score = 20, None

    def __init__(self, task, recipe, file, scale):
        self.task, self.recipe, self.file, self.scale = task, recipe, file, scale

    def samples(self, part, data):
        arrays, size = self.file.samples(part), getattr(self.task, part)
        rows = tasks.subset(size, len(arrays[0]))
        return self.arrange(tuple(array[rows] for array in arrays))

    def rows(self, part):
        return self.file.rows(self.task, part, self.scale)

    def weights(self, path=None, samples=None):
        return self.file.weights(self.task.seed)

    def loaded(self, weights):
        from stele_worker.models.weights import of_arm

        path = self.task.model.get("weights")
        if path is None or self.file.weights(self.task.seed) is not None:
            return weights
        return of_arm(path, weights)

    def input_errors(self):
        return {}

    def correct(self, output, target):
        return self.file.correct(output, target)

    def parity_batch(self):
        return tuple(array[: self.task.batch] for array in self.file.samples("train"))

    def arrange(self, arrays):
        return tuple(channels_first(array, self.recipe) for array in arrays)

    def without_dropout(self):
        rates = self.task.dropout if isinstance(self.task.dropout, (tuple, list)) else (self.task.dropout,)
        quiet = self.task._replace(dropout=(0.0,) * max(len(rates), 1))  # () stands for what the network has
        return FileSubject(quiet, self.recipe, self.file, self.scale)


def channels_last(array, recipe):
    """Return images in the layout of the recipe as (n, height, width, channel), other arrays as they are."""
    images = array.ndim == 4 and recipe.LAYOUT == "NCHW"
    return array.transpose(0, 2, 3, 1) if images else array


def channels_first(array, recipe):
    """Return images (n, height, width, channel) in the layout of the recipe, other arrays as they are."""
    images = array.ndim == 4 and recipe.LAYOUT == "NCHW"
    return numpy.ascontiguousarray(array.transpose(0, 3, 1, 2) if images else array)
