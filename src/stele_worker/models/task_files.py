"""Tasks in files of the user, ``tasks/<task>.py``.

BATCH, EPOCHS, ...       constants, which become the fields ``batch``, ``epochs``, ... of the Task
samples(part)            NumPy arrays of "train" or "test": the inputs in order, then the target
correct(output, target)  optional: how many answers of a batch are right
weights(seed)            optional: {name: array}, the initial weights, the same for every framework
SCALES                   optional: {scale: {constant: value}}
"""

import keyword
import os
from collections import OrderedDict, namedtuple

import numpy

from stele_suite import tasks
from stele_worker.models import importing
from stele_worker.models.errors import SpecError, user_code
from stele_worker.models.inputs import Input

DEFAULTS = {"batch": 32, "epochs": 1, "learning_rate": 0.01, "dropout": (), "optimizer": None}
RESERVED = ("name", "inputs", "target", "model", "source", "data", "seed", "dtype", "values")
PLAIN = (bool, int, float, str, tuple, list, dict, type(None))
MOST = {"smoke": (10, 5), "study": (40, 40), "gate": (50, 50)}  # batches of training and of the test
REPEATED = ("study", "gate")  # scales that repeat the training samples until there are so many batches
TIMED = 50  # batches of inference that are timed at least, but at scale smoke


class TaskFile:
    """A file of the user that describes a Task."""

    def __init__(self, model, source=None):
        self.source = source
        self.model, self.folder = model, model["folder"]
        self.spec = os.path.join("tasks", os.path.basename(model["task"]))
        self.module = importing.import_content(model["task"], "task", self.spec, self.folder)
        self.name = os.path.basename(model["task"])[: -len(".py")]
        if not hasattr(self.module, "samples"):
            raise SpecError("{} does not define the function samples(part).".format(self.spec))
        self.arrays = {}

    def call(self, function, *arguments):
        with user_code(self.spec, self.folder):
            return getattr(self.module, function)(*arguments)

    def samples(self, part):
        """Return the checked arrays of a part. Raise SpecError if something else is returned."""
        if part not in self.arrays:
            arrays = self.call("samples", part)
            if not isinstance(arrays, (tuple, list)) or len(arrays) < 2:
                message = "{}: samples({!r}) returned {!r:.60}. Return the inputs and then the target: x, y."
                raise SpecError(message.format(self.spec, part, arrays))
            self.arrays[part] = tuple(self.checked(part, array) for array in arrays)
            sizes = [len(array) for array in self.arrays[part]]
            if len(set(sizes)) > 1:
                message = "{}: the arrays of samples({!r}) have {} rows. Return arrays of the same length."
                raise SpecError(message.format(self.spec, part, " and ".join(map(str, sizes))))
        return self.arrays[part]

    def checked(self, part, value):
        """Return an array as float32 or int32."""
        array = numpy.asarray(value)
        if not array.ndim or array.dtype.kind not in "fiub":
            message = "{}: samples({!r}) returned {!r:.60}. Return NumPy arrays of numbers, the sample first."
            raise SpecError(message.format(self.spec, part, value))
        if array.dtype.kind == "f":
            return array.astype(numpy.float32)
        if array.dtype.itemsize > 4 and array.size and abs(array).max() >= 2**31:
            raise SpecError("{}: samples({!r}) has integers above 2**31.".format(self.spec, part))
        return array.astype(numpy.int32)

    def constants(self, scale):
        """Return the fields that the file defines, for a scale. Raise SpecError for a name that cannot be a field."""
        constants = {name: value for name, value in vars(self.module).items() if is_constant(name, value)}
        scales = constants.pop("SCALES", {})
        constants.update(scales.get(scale, {}))
        for name in constants:
            if name.lower() in RESERVED or keyword.iskeyword(name.lower()):
                message = "{}: rename the constant {}. Fields of a task cannot be named {!r}."
                raise SpecError(message.format(self.spec, name, name.lower()))
        fields = dict(DEFAULTS, **{name.lower(): value for name, value in constants.items()})
        for name in ("batch", "epochs"):
            if not isinstance(fields[name], int) or fields[name] < 1:
                message = "{}: {} = {!r} is not a positive whole number."
                raise SpecError(message.format(self.spec, name.upper(), fields[name]))
        return fields, scale in scales

    def task(self, scale, seed=0, dtype="float32"):
        """Return the Task at a scale: a named tuple of the constants and of what ``models.task.Task`` has."""
        fields, sizes_given = self.constants(scale)
        for at, part in enumerate(("train", "test")):
            fields[part] = min(len(self.samples(part)[0]), fields.get(part, numpy.inf))
            if not sizes_given and scale in MOST:
                fields[part] = min(fields[part], MOST[scale][at] * fields["batch"])
            if fields[part] < fields["batch"]:
                message = "{}: samples({!r}) has {} rows, fewer than one batch of {}. Return more, or lower BATCH."
                raise SpecError(message.format(self.spec, part, fields[part], fields["batch"]))
        if not sizes_given and scale != "paper":
            fields["epochs"] = epochs(fields["train"] // fields["batch"], scale)
        arrays = [self.input(array, fields["batch"]) for array in self.samples("train")]
        fields.update(inputs=tuple(arrays[:-1]), target=self.target(arrays[-1]), model=self.model, seed=seed)
        fields.update(source=self.source)
        fields.update(name=self.name, data=self.spec if self.counts() else None, dtype=dtype)
        fields.update(values=None)  # the samples have values
        names = sorted(fields)
        return namedtuple("Task", names)(*[fields[name] for name in names])

    def input(self, array, batch):
        shape = (batch,) + array.shape[1:]
        if array.dtype.kind == "f":
            return Input(None, "float", shape)
        return Input(None, "int", shape, max(int(array.max()) + 1, 2))

    def target(self, target):
        """Return the target under the name with which the network takes it, if an inspection found one."""
        facts = self.model.get("target") or {}
        return target._replace(name=facts.get("name"))

    def weights(self, seed):
        """Return the initial weights as float32 arrays, or None if every network initialises itself."""
        if not hasattr(self.module, "weights"):
            return None
        arrays = self.call("weights", seed)
        if not hasattr(arrays, "items"):
            raise SpecError("{}: weights(seed) returned {!r:.60}. Return {{name: array}}.".format(self.spec, arrays))
        return OrderedDict((name, numpy.array(array, numpy.float32)) for name, array in arrays.items())

    def counts(self):
        """Return whether right answers can be counted."""
        return hasattr(self.module, "correct") or self.samples("train")[-1].dtype.kind == "i"

    def correct(self, output, target):
        """Return how many answers of a batch are right; without ``correct``, by the largest output."""
        if hasattr(self.module, "correct"):
            return float(self.call("correct", output, target))
        if output.shape[:-1] != target.shape or output.shape[-1] < 2:
            message = "{}: define correct(output, target). The output has shape {}, the target {}."
            raise SpecError(message.format(self.spec, output.shape, target.shape))
        return float((output.argmax(-1) == target).reshape(len(target), -1).mean(1).sum())

    def rows(self, task, part, scale):
        """Return the rows of each step; "infer" repeats those of "test" until there are enough to time."""
        if part == "train":
            return [rows for epoch in range(task.epochs) for rows in tasks.batch_order(task, epoch)]
        count = task.test // task.batch
        rows = numpy.arange(count * task.batch).reshape(count, task.batch)
        repeated = part == "infer" and scale != "smoke"
        return numpy.concatenate([rows] * -(-TIMED // count)) if repeated else rows


def is_constant(name, value):
    return name.isupper() and not name.startswith("_") and isinstance(value, PLAIN)


def epochs(batches, scale):
    """Return the number of epochs of a scale: one, or as many as its number of batches needs."""
    return -(-MOST[scale][0] // batches) if scale in REPEATED else 1
