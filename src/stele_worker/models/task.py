"""The Task of a user's model: its inputs, its target, and the numbers of batches."""

from typing import NamedTuple, Optional

import numpy

from stele_worker.models.errors import SpecError
from stele_worker.models.inputs import Input, label, sample
from stele_worker.models.specs import Source

BATCHES = {  # of training and of inference
    "smoke": (10, 5),
    "study": (40, 40),
    "gate": (50, 50),
    "quick": (100, 50),
    "paper": (500, 200),
}
DISTINCT = 8  # batches that are generated; longer runs repeat them, for the sake of memory


class Task(NamedTuple):
    name: str  # the spec
    batch: int  # samples of a step
    train: int  # samples
    test: int  # samples
    inputs: tuple  # of Input
    target: Optional[Input]  # None if the model returns a loss without being given a target
    model: dict  # as the host sent it
    data: Optional[str] = None
    epochs: int = 1
    optimizer: Optional[str] = None  # "module:Class"; None is plain SGD
    learning_rate: float = 0.01  # of plain SGD
    dropout: tuple = (1.0,)  # (1.0,): as the model has it; (0.0,): off
    dtype: str = "float32"  # of the arithmetic; the parameters stay float32
    seed: int = 0
    source: Optional[Source] = None  # of the model; it is found once
    values: Optional[dict] = None  # {label: array} of example_inputs(); None: seeded


def make(model, inputs, target, scale, seed=0, dtype="float32", values=None, source=None):
    """Return the Task of a user's model at a scale. Raise SpecError if the inputs do not share their first axis."""
    batch = inputs[0].shape[0]
    for each in inputs:
        if each.shape[0] != batch:
            message = "The first axis of every input is the batch, but {} has {} and {} has {}."
            first = inputs[0]
            raise SpecError(message.format(label(first, 0), batch, label(each, inputs.index(each)), each.shape[0]))
    train, test = BATCHES[scale]
    return Task(
        name=model["spec"],
        batch=batch,
        train=train * batch,
        test=test * batch,
        inputs=tuple(inputs),
        target=target,
        model=model,
        source=source,
        optimizer=model.get("optimizer"),
        seed=seed,
        dtype=dtype,
        values=values,
    )


def with_batch(task, batch):
    """Return a Task with ``batch`` samples in a step, and no more samples; None keeps the number of the Task."""
    if batch is None:
        return task

    def resize(each):
        return each._replace(shape=(batch,) + tuple(each.shape[1:]))

    target = None if task.target is None else resize(task.target)
    values = task.values and {name: array[numpy.arange(batch) % len(array)] for name, array in task.values.items()}
    return task._replace(batch=batch, inputs=tuple(map(resize, task.inputs)), target=target, values=values)


def example(task, count):
    """Return NumPy arrays (inputs..., target) of at most ``distinct`` batches of rows, see ``rows``.

    They are the user's values where there are any, and seeded random numbers elsewhere.
    """
    rng, values = numpy.random.RandomState(task.seed), task.values or {}
    count = min(count, distinct(task) * task.batch)
    inputs = task.inputs + (() if task.target is None else (task.target,))
    return tuple(
        values[name][:count] if name in values else sample(each, count, rng)
        for name, each in [(label(each, at), each) for at, each in enumerate(inputs)]
    )


def distinct(task):
    """Return how many batches differ: example_inputs() returns one."""
    return 1 if task.values else DISTINCT


def rows(task, part):
    """Return the rows of ``example`` for each step of ``part``, "train" or "test": int64 of shape (steps, batch)."""
    steps = getattr(task, part) // task.batch
    order = numpy.arange(steps * task.batch) % (min(steps, distinct(task)) * task.batch)
    return order.reshape(steps, task.batch)


def without_dropout(task):
    """Return whether dropout is off, see ``stele_suite.tasks.without_dropout``."""
    rates = task.dropout if isinstance(task.dropout, (tuple, list)) else (task.dropout,)
    return len(rates) > 0 and not any(rates)
