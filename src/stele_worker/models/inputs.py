"""The inputs of a user's model: names, kinds and shapes, and seeded batches of them."""

from typing import NamedTuple, Optional

import numpy

from stele_worker.models.errors import SpecError

KINDS = ("float", "int", "mask")


class Input(NamedTuple):
    name: Optional[str]  # of the parameter; None is passed by position
    kind: str  # "float", "int" or "mask"
    shape: tuple  # the batch first
    high: Optional[int] = None  # of an int: how many values there are


def parse(values):
    """Return Inputs from the host's dicts. Raise SpecError if a kind or a shape is invalid."""
    return tuple(check(value) for value in values)


def check(value):
    name, kind, shape, high = (value.get(key) for key in Input._fields)
    if kind not in KINDS:
        raise SpecError("{!r} is not a kind of input; there are {}.".format(kind, ", ".join(KINDS)))
    if not shape or not all(isinstance(size, int) and size > 0 for size in shape):
        raise SpecError("The shape {!r} is not a list of positive sizes, such as 8x3x64x64.".format(shape))
    if high is not None and high < 2:
        raise SpecError("An input of kind int needs at least 2 values, not {}.".format(high))
    return Input(name, kind, tuple(shape), high)


def complete(given, vocabulary):
    """Return the Inputs with ``high`` set for every int, from ``vocabulary`` if it was not given. Raise SpecError."""
    return tuple(
        each._replace(high=vocabulary or unknown(each)) if each.kind == "int" and each.high is None else each
        for each in given
    )


def unknown(each):
    message = "How many values the input {} has is not known. Add it, for example: --input {}:1000"
    raise SpecError(message.format(option(each), option(each)))


def option(each):
    """Return an input as written on the command line: 8x3x64x64, or ids=int:4x16:1000."""
    parts = [] if each.kind == "float" else [each.kind]
    parts.append("x".join(str(size) for size in each.shape))
    parts += [] if each.high is None else [str(each.high)]
    return (each.name + "=" if each.name else "") + ":".join(parts)


def as_dict(each):
    """Return an Input as the dict that the host sends and receives."""
    return dict(each._asdict(), shape=list(each.shape))


def from_examples(examples):
    """Return Inputs like the result of ``example_inputs()``: an array, or a tuple or dict of arrays.

    Arrays of any framework have ``shape`` and ``dtype``; an int has as many values as its largest number says.
    """
    if isinstance(examples, dict) or hasattr(examples, "keys"):
        named = [(name, examples[name]) for name in examples]
    else:
        values = examples if isinstance(examples, (tuple, list)) else (examples,)
        named = [(None, value) for value in values]
    return tuple(from_example(name, value) for name, value in named)


def from_example(name, value):
    if not hasattr(value, "shape") or not hasattr(value, "dtype") or not len(value.shape):
        message = "example_inputs() returned {!r:.60}; arrays or tensors are needed, the batch first."
        raise SpecError(message.format(value))
    shape, dtype = tuple(int(size) for size in value.shape), str(value.dtype)
    if "bool" in dtype or ("int" in dtype and "mask" in (name or "")):
        return Input(name, "mask", shape)
    if "int" in dtype:
        return Input(name, "int", shape, max(int(numpy.asarray(value).max()) + 1, 2))
    return Input(name, "float", shape)


def sample(each, count, rng):
    """Return ``count`` rows of an input: standard normal float32, int32 from 1 on, or an int32 mask."""
    shape = (count,) + each.shape[1:]
    if each.kind == "float":
        return rng.standard_normal(shape).astype(numpy.float32)
    if each.kind == "int":
        return rng.randint(1, each.high, shape).astype(numpy.int32)  # 0 is often padding
    mask = numpy.ones(shape, numpy.int32)
    if mask.ndim > 1:
        mask[1::2, ..., -(-3 * shape[-1] // 4) :] = 0  # the last quarter of every other row
    return mask


def labels(each, count, rng):
    """Return ``count`` rows of a target: float32, or int32 classes that are not all equal."""
    if each.kind != "int":
        return sample(each, count, rng)
    classes = rng.randint(0, each.high, (count,) + each.shape[1:]).astype(numpy.int32)
    first = classes.reshape(-1)
    if (first == first[0]).all():
        first[-1] = (first[0] + 1) % each.high
    return classes
