"""The Task of a user's model: its inputs, its target, and the numbers of batches."""

from typing import NamedTuple, Optional

import numpy

from stele_worker.models.errors import SpecError
from stele_worker.models.inputs import Input, labels, sample

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


def make(model, inputs, target, scale, seed=0, dtype="float32"):
    """Return the Task of a user's model at a scale. Raise SpecError if the inputs do not share their first axis."""
    batch = inputs[0].shape[0]
    for each in inputs:
        if each.shape[0] != batch:
            message = "The first axis of every input is the batch, but {} has {} and {} has {}."
            first = inputs[0]
            raise SpecError(
                message.format(label(first, 0), batch, label(each, inputs.index(each)), each.shape[0])
            )
    train, test = BATCHES[scale]
    return Task(
        name=model["spec"],
        batch=batch,
        train=train * batch,
        test=test * batch,
        inputs=tuple(inputs),
        target=target,
        model=model,
        optimizer=model.get("optimizer"),
        seed=seed,
        dtype=dtype,
    )


def with_batch(task, batch):
    """Return a Task with ``batch`` samples in a step, and no more samples; None keeps the number of the Task."""
    if batch is None:
        return task

    def resize(each):
        return each._replace(shape=(batch,) + tuple(each.shape[1:]))

    target = None if task.target is None else resize(task.target)
    return task._replace(batch=batch, inputs=tuple(map(resize, task.inputs)), target=target)


def label(each, position):
    return each.name or "input {}".format(position + 1)


def example(task, count):
    """Return seeded NumPy arrays (inputs..., target) of at most ``DISTINCT`` batches of rows, see ``rows``."""
    rng = numpy.random.RandomState(task.seed)
    count = min(count, DISTINCT * task.batch)
    arrays = [sample(each, count, rng) for each in task.inputs]
    if task.target is not None:
        arrays.append(labels(task.target, count, rng))
    return tuple(arrays)


def rows(task, part):
    """Return the rows of ``example`` for each step of ``part``, "train" or "test": int64 of shape (steps, batch)."""
    steps = getattr(task, part) // task.batch
    order = numpy.arange(steps * task.batch) % (min(steps, DISTINCT) * task.batch)
    return order.reshape(steps, task.batch)


def without_dropout(task):
    """Return whether dropout is off, see ``stele_worker.tasks.without_dropout``."""
    rates = task.dropout if isinstance(task.dropout, (tuple, list)) else (task.dropout,)
    return len(rates) > 0 and not any(rates)
