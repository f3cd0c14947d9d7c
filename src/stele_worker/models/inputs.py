"""The inputs of a user's model: names, kinds and shapes, and batches of them, seeded or of the user."""

import re
from typing import NamedTuple, Optional

import numpy

from stele_worker.models.errors import SpecError

KINDS = ("float", "int", "mask")
DTYPE = re.compile("bfloat16|bool|(float|complex|u?int)[0-9]+")
UNIT = {  # in the last place of 1, by dtype; whole numbers have none
    "float64": 2.0**-52,
    "complex128": 2.0**-52,
    "float32": 2.0**-23,
    "complex64": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
}
UNITS = 8  # in the last place: what a few roundings change in an element
WHOLE = "biu"  # kinds of NumPy's dtypes
BFLOAT16 = numpy.dtype([("bfloat16", "<u2")])  # NumPy has no bfloat16; ``put`` of a framework knows this one


class Input(NamedTuple):
    name: Optional[str]  # of the parameter; None is passed by position
    kind: str  # "float", "int" or "mask"
    shape: tuple  # the batch first
    high: Optional[int] = None  # of an int: how many values there are
    dtype: Optional[str] = None  # of an array of example_inputs(), such as "float64"; None: float32 or int32


def parse(values):
    """Return Inputs from the host's dicts. Raise SpecError if a kind or a shape is invalid."""
    return tuple(check(value) for value in values)


def check(value):
    name, kind, shape, high, dtype = (value.get(key) for key in Input._fields)
    if kind not in KINDS:
        raise SpecError("{!r} is not a kind of input; there are {}.".format(kind, ", ".join(KINDS)))
    if not shape or not all(isinstance(size, int) and size > 0 for size in shape):
        raise SpecError("The shape {!r} is not a list of positive sizes, such as 8x3x64x64.".format(shape))
    if high is not None and high < 2:
        raise SpecError("An input of kind int needs at least 2 values, not {}.".format(high))
    return Input(name, kind, tuple(shape), high, dtype)


def label(each, position):
    """Return the name of an input, or ``input 1``."""
    return each.name or "input {}".format(position + 1)


def complete(items, vocabulary):
    """Return the Inputs with ``high`` set for every int, from ``vocabulary`` if it was not given. Raise SpecError."""
    return tuple(
        each._replace(high=vocabulary or unknown(each)) if each.kind == "int" and each.high is None else each
        for each in items
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


def from_examples(examples, double=True):
    """Return (Inputs, {label: array}) of the result of ``example_inputs()``: an array, or a tuple or dict of arrays.

    Arrays of any framework have ``shape`` and ``dtype``; an int has as many values as its largest number says.
    Without ``double``, NumPy's float64 becomes float32: a framework that does not compute in it could not use it.
    """
    if isinstance(examples, dict) or hasattr(examples, "keys"):
        named = [(name, examples[name]) for name in examples]
    else:
        values = examples if isinstance(examples, (tuple, list)) else (examples,)
        named = [(None, value) for value in values]
    pairs = [from_example(name, value, double) for name, value in named]
    items = tuple(each for each, _ in pairs)
    return items, {label(each, at): array for at, (each, array) in enumerate(pairs)}


def from_example(name, value, double):
    """Return (Input, array) of an array or a tensor."""
    if not hasattr(value, "shape") or not hasattr(value, "dtype") or not len(value.shape):
        message = "example_inputs() returned {!r:.60}; arrays or tensors are needed, the batch first."
        raise SpecError(message.format(value))
    if isinstance(value, numpy.ndarray) and value.dtype == numpy.float64 and not double:
        value = value.astype(numpy.float32)
    array, dtype = to_array(value)
    shape = tuple(int(size) for size in value.shape)
    if dtype == "bool" or ("int" in dtype and "mask" in (name or "")):
        return Input(name, "mask", shape, None, dtype), array
    if "int" in dtype:
        return Input(name, "int", shape, max(int(array.max()) + 1, 2) if array.size else 2, dtype), array
    return Input(name, "float", shape, None, dtype), array


def to_array(value):
    """Return (NumPy array, name of its dtype) of an array or a tensor of any framework."""
    if hasattr(value, "detach"):  # PyTorch and Paddle
        value = value.detach().cpu()
    dtype = dtype_of(value)
    if dtype == "bfloat16":
        return narrow(widen(value)), dtype
    return numpy.asarray(value, order="C"), dtype


def dtype_of(value):
    """Return the name of the dtype of an array of any framework, such as "float32"."""
    match = DTYPE.search(str(value.dtype))
    return match.group() if match else str(value.dtype)


def widen(value):
    """Return a tensor of bfloat16 as a NumPy array of float32."""
    if hasattr(value, "float"):  # PyTorch
        value = value.float()
    elif not hasattr(value, "astype"):  # TensorFlow
        value = value.numpy()
    return numpy.asarray(value.astype("float32") if hasattr(value, "astype") else value)


def has_more_digits(dtype):
    """Return whether float32, in which most values are read, cannot hold all numbers of a dtype."""
    return dtype == "float64" or "int" in dtype or dtype == "bool"


def narrow(array):
    """Return an array of float32, whose numbers bfloat16 has, as an array of BFLOAT16."""
    bits = numpy.ascontiguousarray(array, "<f4").view("<u4") >> 16
    return bits.astype("<u2").view(BFLOAT16)


def numbers_of(array):
    """Return an array as float64, a complex number as two."""
    if array.dtype == BFLOAT16:
        array = (array.view("<u2").astype("<u4") << 16).view("<f4")
    if array.dtype.kind == "c":
        array = numpy.stack([array.real, array.imag], -1)
    return array.astype(numpy.float64)


def difference(expected, returned):
    """Return how what example_inputs() has ``returned`` now differs from the ``expected`` Inputs, as text; else None.

    ``returned`` may have one more, which is the target.
    """
    named = {label(each, at): each for at, each in enumerate(returned)}
    for at, each in enumerate(expected):
        name, other = label(each, at), named.get(label(each, at))
        if other is None:
            return "{} is missing".format(name)
        for fact in ("kind", "shape", "dtype"):
            values = getattr(other, fact), getattr(each, fact)
            if values[0] != values[1]:
                return "{} has {} {}, not {}".format(name, fact, *values)
    return None


def equal(array, expected):
    """Return where the elements of two arrays of one shape are equal. NaN is equal to NaN."""
    return (array == expected) | ((array != array) & (expected != expected))


def compare(array, expected, dtype=None, computed=False):
    """Return (a mask of the elements that differ by more than rounding, their largest relative error).

    (None, None) for another shape; the error is 0 if none differs, and None if it is not finite. Each element is
    judged by itself: a large number does not hide what happens to a small one. Whole numbers are compared exactly.
    ``dtype`` is that in which both were made, if not that of ``array``. Elements that were ``computed`` together, as
    by an initializer that subtracts their mean, share the rounding of the largest one, half a unit on either side.
    """
    if expected is None or array.shape != expected.shape:
        return None, None
    unit = UNIT.get(dtype or dtype_of(array), 0.0)
    if array.dtype.kind in WHOLE and expected.dtype.kind in WHOLE:
        if array.dtype != expected.dtype:  # NumPy would compare int64 with uint64 as float64
            array, expected = array.astype(object), expected.astype(object)
        differ = ~equal(array, expected).astype(bool)
        array, expected = (numbers[differ].astype(numpy.float64) for numbers in (array, expected))
        return differ, relative_error(array, expected)
    array, expected = numbers_of(array), numbers_of(expected)
    with numpy.errstate(invalid="ignore", over="ignore"):
        finite = numpy.isfinite(expected)
        sizes = numpy.where(finite, abs(expected), 0)
        allowed = unit * (UNITS * sizes + (sizes.max() if computed and sizes.size else 0))
        differ = ~(equal(array, expected) | (finite & (abs(array - expected) <= allowed)))
    return differ, relative_error(array[differ], expected[differ])


def relative_error(array, expected):
    """Return the largest difference relative to its elements, which all differ; None if one is not finite."""
    if not array.size:
        return 0.0
    if not (numpy.isfinite(array).all() and numpy.isfinite(expected).all()):
        return None
    sizes = numpy.maximum(abs(array), abs(expected))
    # two whole numbers may differ and be one float64
    return max(float((abs(array - expected) / numpy.maximum(sizes, 1e-300)).max()), 2.0**-64)


def show_shapes_alone(values):
    """Return whether the numbers of each array are equal, such as those of zeros(): they say nothing else."""
    return all(bool((array == array.reshape(-1)[:1]).all()) for array in values.values())


def sample(each, count, rng):
    """Return ``count`` rows of an input: standard normal numbers, integers from 0 on, or a mask."""
    array = draw(each, (count,) + each.shape[1:], rng)
    if each.dtype is None:
        return array
    return narrow(array) if each.dtype == "bfloat16" else array.astype(each.dtype)


def draw(each, shape, rng):
    if each.kind == "float":
        return rng.standard_normal(shape).astype(numpy.float32)
    if each.kind == "int":
        return integers(each.high, shape, rng)
    mask = numpy.ones(shape, numpy.int32)
    if mask.ndim > 1:
        mask[1::2, ..., -(-3 * shape[-1] // 4) :] = 0  # the last quarter of every other row
    return mask


def integers(high, shape, rng):
    """Return int32 from 0 to ``high`` - 1 that are not all equal."""
    values = rng.randint(0, high, shape).astype(numpy.int32)
    first = values.reshape(-1)
    if first.size > 1 and (first == first[0]).all():
        first[-1] = (first[0] + 1) % high
    return values
